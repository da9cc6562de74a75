package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vague are words that hide the subject of a sentence, or that have a standard term: report for tells and told, failure for
// trouble, valid for honest.
var vague = regexp.MustCompile(`(?i)\b(somebody|nobody|anybody|everybody|whoever|strangers?|honest|tells|told|troubles?|complains?)\b`)

func TestDocumentsUsePlainWords(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range trackedFiles(t) {
		installed := strings.HasPrefix(file, "chart/") || strings.HasPrefix(file, "manifests/")
		if filepath.Ext(file) != ".md" && !installed {
			continue
		}
		checked++
		for n, line := range strings.Split(read(t, file), "\n") {
			assertPlain(t, line, "%s:%d", file, n+1)
		}
	}
	require.Greater(t, checked, 20)
}

// Comments are read by contributors, the strings of the program by users.
func TestProgramUsesPlainWords(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range trackedFiles(t) {
		program := strings.HasPrefix(file, "pkg/") || strings.HasPrefix(file, "webhook/") || file == "main.go"
		if !program || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		checked++
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, read(t, file), parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				assertPlain(t, text.Value, "%s", files.Position(text.Pos()))
			}
			return true
		})
		for _, group := range parsed.Comments {
			for _, comment := range group.List {
				assertPlain(t, comment.Text, "%s", files.Position(comment.Pos()))
			}
		}
	}
	require.Greater(t, checked, 100)
}

func assertPlain(t *testing.T, text, where string, arguments ...any) {
	t.Helper()
	if word := vague.FindString(text); word != "" {
		assert.Fail(t, "use another word than "+word+": "+text, append([]any{where}, arguments...)...)
	}
}
