package repository

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const module = "github.com/pod-reloader/pod-reloader/"

var (
	librariesRow = regexp.MustCompile(`(?m)^\| the Go packages (.+?) \|`)
	library      = regexp.MustCompile("`(pkg/[a-z]+)`")
)

// docs/releasing.md names the packages that keep their word in a minor version. A type of another package in their API would be a type
// that a client cannot rely on.
func TestLibrariesHaveNamesForEveryTypeOfTheirAPI(t *testing.T) {
	t.Parallel()
	row := librariesRow.FindStringSubmatch(read(t, "docs/releasing.md"))
	require.NotNil(t, row)
	found := library.FindAllStringSubmatch(row[1], -1)
	require.Len(t, found, 2)
	for _, match := range found {
		api := exported{named: map[string]bool{}, used: map[string]bool{}}
		scope := imported(t, module+match[1]).Scope()
		for _, name := range scope.Names() {
			if object := scope.Lookup(name); object.Exported() {
				if named, ok := types.Unalias(object.Type()).(*types.Named); ok && isType(object) {
					api.named[named.String()] = true
				}
				api.walk(object.Type())
			}
		}
		require.NotEmpty(t, api.used, match[1])
		for name := range api.used {
			assert.True(t, api.named[name], "the API of %s has the type %s: give it a name there", match[1], name)
		}
	}
}

func isType(object types.Object) bool {
	_, ok := object.(*types.TypeName)
	return ok
}

// imported is a package as its clients see it.
func imported(t *testing.T, path string) *types.Package {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", path)
	list.Dir = toolchain.RootOf(t)
	out, err := list.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		dependency, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[dependency] = file
	}
	open := func(dependency string) (io.ReadCloser, error) { return os.Open(exports[dependency]) }
	found, err := importer.ForCompiler(token.NewFileSet(), "gc", open).Import(path)
	require.NoError(t, err)
	return found
}

// exported are types of this module: those that an API gives a name, and those that it uses.
type exported struct{ named, used map[string]bool }

// walk finds the types that a client meets from one type on: by exported fields and methods, parameters and results.
func (e exported) walk(of types.Type) {
	switch of := types.Unalias(of).(type) {
	case *types.Named:
		e.walkNamed(of)
	case *types.Struct:
		for field := range of.Fields() {
			if field.Exported() {
				e.walk(field.Type())
			}
		}
	case *types.Interface:
		for method := range of.Methods() {
			e.walk(method.Type())
		}
	case *types.Signature:
		e.walk(of.Params())
		e.walk(of.Results())
	case *types.Tuple:
		for variable := range of.Variables() {
			e.walk(variable.Type())
		}
	case *types.Map:
		e.walk(of.Key())
		e.walk(of.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		e.walk(of.Elem())
	}
}

func (e exported) walkNamed(of *types.Named) {
	if e.used[of.String()] || !strings.HasPrefix(of.String(), module) {
		return
	}
	e.used[of.String()] = true
	e.walk(of.Underlying())
	for method := range of.Methods() {
		if method.Exported() {
			e.walk(method.Type())
		}
	}
}
