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
var vague = regexp.MustCompile(
	`(?i)\b(somebody|nobody|anybody|everybody|whoever|strangers?|honest|tells|told|troubles?|troubled|complains?|complaints?)\b`)

// camelCase finds where a word of an identifier ends and the next one begins.
var camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// listing is the file with the list of vague words.
const listing = "e2e/suite/repository/language_test.go"

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
		if filepath.Ext(file) == ".go" && !ofTests(file) {
			checked++
			assertPlainFile(t, file)
		}
	}
	require.Greater(t, checked, 100)
}

func TestTestsUsePlainWords(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range trackedFiles(t) {
		if filepath.Ext(file) == ".go" && ofTests(file) && file != listing {
			checked++
			assertPlainFile(t, file)
		}
	}
	require.Greater(t, checked, 300)
}

func TestVagueWordsAreFoundInIdentifiers(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{
		"TestListIsTold": "Told", "TestDelaysNobody": "Nobody", "troubleOf": "trouble", "told": "told",
		"NoBody": "", "UpdateWithoutOldAnnotations": "", "toldest": "",
	} {
		assert.Equal(t, word, vague.FindString(words(name)), name)
	}
}

// ofTests reports whether a Go file is a test or belongs to the end-to-end tests.
func ofTests(file string) bool {
	return strings.HasPrefix(file, "e2e/") || strings.HasSuffix(file, "_test.go")
}

// words is an identifier with a space between its words.
func words(identifier string) string { return camelCase.ReplaceAllString(identifier, "$1 $2") }

// assertPlainFile checks the names, strings and comments of a Go file.
func assertPlainFile(t *testing.T, file string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, read(t, file), parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				assertPlain(t, n.Value, "%s", files.Position(n.Pos()))
			}
		case *ast.Ident:
			assertPlain(t, words(n.Name), "%s", files.Position(n.Pos()))
		}
		return true
	})
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			assertPlain(t, comment.Text, "%s", files.Position(comment.Pos()))
		}
	}
}

func assertPlain(t *testing.T, text, where string, arguments ...any) {
	t.Helper()
	if word := vague.FindString(text); word != "" {
		assert.Fail(t, "use another word than "+word+": "+text, append([]any{where}, arguments...)...)
	}
}
