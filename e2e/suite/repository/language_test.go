package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vague are words that hide the subject of a sentence, or that have a standard term: report, notify or emit for tell and announce,
// failure for trouble, valid for honest. A sentence names its subject instead of beginning with a question word.
var vague = regexp.MustCompile(`(?i)\b(somebody|nobody|anybody|everybody|whoever|strangers?|honest|` +
	`tells?|telling|told|untold|announc\w*|unannounced|troubles?|troubled|complains?|complaints?|` +
	`(?-i:Who (?:asks|goes|has|looks|refers|tracks|wants)))\b`)

// A word of an identifier ends before a capital letter that follows a small one, and before the last of several capital
// letters, as in AStranger.
var (
	camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	capitals  = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// listing is the file with the list of vague words.
const listing = "e2e/suite/repository/language_test.go"

func TestDocumentsUsePlainWords(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range trackedFiles(t) {
		if !isText(file) {
			continue
		}
		checked++
		for n, line := range strings.Split(read(t, file), "\n") {
			assertPlain(t, line, "%s:%d", file, n+1)
		}
	}
	require.Greater(t, checked, 150)
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
		"TestFoundByAStranger": "Stranger", "tellAgain": "tell", "reloadsAnnounced": "Announced",
		"NoBody": "", "UpdateWithoutOldAnnotations": "", "toldest": "", "intelligent": "",
	} {
		assert.Equal(t, word, vague.FindString(words(name)), name)
	}
}

// isText reports whether a file that is no Go file is read by users or contributors: pages, what is installed, fixtures and
// configuration in YAML, and what builds and checks the project.
func isText(file string) bool {
	if filepath.Base(file) == "Makefile" || slices.Contains([]string{".md", ".yaml", ".yml", ".sh"}, filepath.Ext(file)) {
		return true
	}
	return slices.ContainsFunc([]string{"chart/", "manifests/", ".ci/", ".github/"}, func(dir string) bool { return strings.HasPrefix(file, dir) })
}

// ofTests reports whether a Go file is a test or belongs to the end-to-end tests.
func ofTests(file string) bool {
	return strings.HasPrefix(file, "e2e/") || strings.HasSuffix(file, "_test.go")
}

// words is an identifier with a space between its words.
func words(identifier string) string {
	return capitals.ReplaceAllString(camelCase.ReplaceAllString(identifier, "$1 $2"), "$1 $2")
}

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

// assertPlain checks one text of a file.
func assertPlain(t *testing.T, text, where string, arguments ...any) {
	t.Helper()
	if word := vague.FindString(text); word != "" {
		assert.Fail(t, "use another word than "+word+": "+text, append([]any{where}, arguments...)...)
	}
}
