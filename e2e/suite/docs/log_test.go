package docs_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logsPage has the log messages that need an action.
const logsPage = "docs/logs.md"

// logsOfLibraries are messages that the program itself does not contain.
var logsOfLibraries = []string{
	"failed read certificate, error re-reading certificate", // package certwatcher of controller-runtime
	"Error retrieving lease lock",                           // package leaderelection of client-go, like the next ones
	"Error initially creating lease lock",
	"Failed to update lease",
}

// A message of the program may be longer than the page shows it. A message that the program composes has a part that the program contains.
func TestDocumentedLogMessagesExist(t *testing.T) {
	t.Parallel()
	const longEnough = 20
	var texts []string
	for _, file := range program(t, "pkg", "webhook") {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if text, ok := literal(n); ok && len(text) > longEnough {
				texts = append(texts, text)
			}
			return true
		})
	}
	messages := strings.Split(firstCells(t, logsPage), "\n")[1:] // without the heading of the column
	require.Greater(t, len(messages), 30)
	for _, message := range messages {
		found := slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, message) || strings.HasPrefix(message, text) })
		assert.True(t, found || slices.Contains(logsOfLibraries, message), "%s has the message %q", logsPage, message)
	}
}
