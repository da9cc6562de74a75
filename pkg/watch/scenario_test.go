package watch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryScenario compares the specification's scenarios with the tests:
// each has exactly one, with a comment that names a change of the code which
// makes it fail.
func TestEveryScenario(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/scenarios.txt")
	require.NoError(t, err)
	var titles []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			titles = append(titles, line)
		}
	}
	require.Len(t, titles, 31)
	var tested []string
	files, err := filepath.Glob("scenario_*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		tested = append(tested, scenariosOf(t, file)...)
	}
	assert.ElementsMatch(t, titles, tested)
}

// scenariosOf lists the titles of the scenario calls in a file.
func scenariosOf(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	require.NoError(t, err)
	mutations := map[int]bool{} // by the line after the comment
	for _, group := range parsed.Comments {
		if strings.HasPrefix(group.Text(), "Mutation: ") {
			mutations[fset.Position(group.End()).Line+1] = true
		}
	}
	var titles []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 3 {
			return true
		}
		if called, ok := call.Fun.(*ast.Ident); !ok || called.Name != "scenario" {
			return true
		}
		title, err := strconv.Unquote(call.Args[1].(*ast.BasicLit).Value)
		require.NoError(t, err)
		assert.Truef(t, mutations[fset.Position(call.Pos()).Line], "%q names no mutation", title)
		titles = append(titles, title)
		return true
	})
	return titles
}
