package simulate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// TestPlantedFaultsFitTheCode shows that each fault of the list can be planted, and that the program then still compiles: a fault
// that does not is found to be missing only after minutes of make simulate-planted.
func TestPlantedFaultsFitTheCode(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	faults, err := ReadPlanted()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(faults), 20)
	names := map[string]bool{}
	check := newChecker(t)
	for _, fault := range faults {
		assert.False(t, names[fault.Name], "%s is there twice", fault.Name)
		names[fault.Name] = true
		file, content, err := fault.Apply()
		if assert.NoError(t, err) {
			assert.NoError(t, check.file(file, content), "plant %s", fault.Name)
		}
	}
}

func TestCheckerFindsWhatDoesNotCompile(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	check := newChecker(t)
	file := filepath.Join(toolchain.RootOf(t), "pkg", "stamp", "rules.go")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, check.file(file, content))
	for name, test := range map[string]struct{ old, new, want string }{
		"no Go":           {"func always", "fun always", "rules.go"},
		"unknown name":    {"RuleSecondPass, secondPass,", "RuleSecondPass, pass,", "undefined: pass"},
		"another type":    {"RuleNothing, always,", "RuleNothing, nothing,", "cannot use nothing"},
		"unused variable": {"all := rules()", "all, more := rules(), 1", "declared and not used: more"},
	} {
		assert.ErrorContains(t, check.file(file, bytes.Replace(content, []byte(test.old), []byte(test.new), 1)), test.want, name)
	}
}

// checker type-checks packages of the program against what the compiler has left of those that they import.
type checker struct {
	files    *token.FileSet
	importer types.Importer
}

func newChecker(t *testing.T) checker {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./pkg/...")
	list.Dir = toolchain.RootOf(t)
	out, err := list.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[importPath] = file
	}
	files := token.NewFileSet()
	return checker{files, importer.ForCompiler(files, "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(exports[importPath])
	})}
}

// file checks the package of a file with another content of the file.
func (c checker) file(file string, content []byte) error {
	dir := filepath.Dir(file)
	listed, err := build.ImportDir(dir, 0)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", dir, err)
	}
	var parsed []*ast.File
	for _, name := range listed.GoFiles {
		var source any
		if filepath.Join(dir, name) == filepath.Clean(file) {
			source = content
		}
		tree, err := parser.ParseFile(c.files, filepath.Join(dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, tree)
	}
	config := types.Config{Importer: c.importer}
	_, err = config.Check(path.Base(dir), c.files, parsed, nil)
	return err
}
