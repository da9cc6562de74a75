package repository

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// A contributor may have macOS, which no check compiles for. What files for Linux only declare, and other files use, is declared there,
// too.
func TestPlatformsDeclareTheSame(t *testing.T) {
	t.Parallel()
	var dirs []string
	for _, file := range trackedFiles(t) {
		if filepath.Ext(file) == ".go" {
			dirs = append(dirs, filepath.Join(toolchain.RootOf(t), filepath.Dir(file)))
		}
	}
	slices.Sort(dirs)
	checked := 0
	for _, dir := range slices.Compact(dirs) {
		onLinux, onMacOS := sources(t, dir, "linux"), sources(t, dir, "darwin")
		if slices.Equal(onLinux, onMacOS) {
			continue
		}
		checked++
		isShared := func(file string) bool { return slices.Contains(onMacOS, file) }
		used := map[string]bool{}
		for _, file := range slices.DeleteFunc(slices.Clone(onLinux), func(file string) bool { return !isShared(file) }) {
			ast.Inspect(syntax(t, dir, file), func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok {
					used[name.Name] = true
				}
				return true
			})
		}
		there := functions(t, dir, onMacOS)
		for _, name := range functions(t, dir, slices.DeleteFunc(onLinux, isShared)) {
			if used[name] || ast.IsExported(name) {
				assert.True(t, slices.Contains(there, name), "%s declares %s for Linux only", dir, name)
			}
		}
	}
	assert.NotZero(t, checked)
}

// sources are the files of a package on a system, without tests.
func sources(t *testing.T, dir, system string) []string {
	t.Helper()
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = system, "arm64", false
	found, err := context.ImportDir(dir, 0)
	if _, none := err.(*build.NoGoError); !none { //nolint:errorlint // it is not wrapped
		require.NoError(t, err)
	}
	return found.GoFiles
}

func syntax(t *testing.T, dir, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return parsed
}

// functions are the names of the functions and methods that files declare.
func functions(t *testing.T, dir string, files []string) []string {
	t.Helper()
	var names []string
	for _, file := range files {
		for _, declaration := range syntax(t, dir, file).Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				names = append(names, function.Name.Name)
			}
		}
	}
	return names
}
