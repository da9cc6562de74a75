package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const switches = `package a

const limit = 2 * second

var later = func() int { return 1 + 1 }

func f(x, y int) bool {
	z := x + y
	switch {
	case x < y &&
		x > 0:
		return z == 1
	case func() bool { return x == y }():
		return false
	}
	if i := 1 + index(func(r int) bool { return r == 1 }); i > 0 {
		return x > 1
	}
	return true
}
`

func TestOperatorsOutsideOfCoverageAreAddedToIt(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "pkg", "a"), 0o700))
	for _, name := range []string{"a.go", "a_test.go", "a.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(tree, "pkg", "a", name), []byte(switches), 0o600))
	}
	blocks, err := uncounted(tree, "pkg/a")
	require.NoError(t, err)
	at := func(position string) string { return module + "pkg/a/a.go:" + position + "," + position + " 1 1\n" }
	assert.Equal(t, at("3.17")+ // 2 * second
		at("10.9")+at("10.13")+at("11.5")+ // case x < y && x > 0
		at("16.59"), string(blocks)) // i > 0
}

func TestGoCommandReportsWhatDoesNotCompile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		want   int
	}{
		"the tests pass":          {"echo ok", 0},
		"a test fails":            {"echo 'FAIL pkg/a 0.1s'; exit 1", 1},
		"the code does not build": {"echo 'FAIL pkg/a [build failed]'; exit 1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := shimmed(t, tc.script, "test", "-timeout", "1s", "pkg/a").Run()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			assert.Equal(t, tc.want, code)
		})
	}
}

func TestGoCommandAddsToTheProfile(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "profile")
	out, err := shimmed(t, `echo "mode: set" >"$4"`, "test", "-cover", "-coverprofile", profile, "./pkg/a/...").Output()
	require.NoError(t, err)
	assert.Equal(t, "slept 5\n", string(out), "8 times as long is the least timeout of a mutant")
	body, err := os.ReadFile(profile)
	require.NoError(t, err)
	assert.Equal(t, "mode: set\nadded\n", string(body))
}

// shimmed returns goCommand with a script for go.
func shimmed(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
		return path
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{write("shim", goCommand)}, args...)...)
	write("sleep", "#!/bin/sh\necho slept $1\n")
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "MUTATE_GO="+write("go", "#!/bin/sh\n"+script+"\n"), "MUTATE_UNCOUNTED="+write("uncounted", "added\n"))
	return cmd
}
