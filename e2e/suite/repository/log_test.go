package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxLogMessage is how long a log message may be; the values of a message say more.
const maxLogMessage = 100

// longLogMessages are those that name a remedy, since nothing is reloaded until an operator has read them.
var longLogMessages = map[string]bool{
	"pkg/keyring/keyring.go": true,
}

// Log messages have one style: they start with a small letter, as error texts do, and have no period.
func TestLogMessagesHaveOneStyle(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range trackedFiles(t) {
		if filepath.Ext(file) != ".go" || ofTests(file) {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, read(t, file), parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			message, ok := logMessage(n)
			if !ok {
				return true
			}
			checked++
			at := files.Position(n.Pos())
			first, _ := utf8.DecodeRuneInString(message)
			assert.True(t, unicode.IsLower(first), "%s: %q does not start with a small letter", at, message)
			assert.NotRegexp(t, `\.( |$)`, message, "%s: a message is one sentence without a period", at)
			if !longLogMessages[file] {
				assert.LessOrEqual(t, len(message), maxLogMessage, "%s: %q is too long: use values", at, message)
			}
			return true
		})
	}
	require.Greater(t, checked, 60)
}

// logMessage returns the message of a call that logs.
func logMessage(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if receiver, ok := method.X.(*ast.Ident); ok && receiver.Name == "http" {
		return "", false // http.Error answers a request
	}
	if !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "logOnce"}, method.Sel.Name) {
		return "", false
	}
	// The message of logr's Error follows the error, that of slog is the first argument.
	at := slices.IndexFunc(call.Args[:min(len(call.Args), 2)], isString)
	if at < 0 {
		return "", false
	}
	message, err := strconv.Unquote(call.Args[at].(*ast.BasicLit).Value)
	return message, err == nil
}

// isString reports whether an expression is a literal text.
func isString(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}
