package repository

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// trackedFiles are those of the next commit: what git tracks and what it would track, without what has been removed.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	removed := gitFiles(t, "--deleted")
	files := gitFiles(t, "--cached", "--others", "--exclude-standard")
	return slices.DeleteFunc(files, func(file string) bool { return slices.Contains(removed, file) })
}

func gitFiles(t *testing.T, which ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"ls-files", "-z"}, which...)...)
	command.Dir = toolchain.RootOf(t)
	out, err := command.Output()
	require.NoError(t, err, "git ls-files: the checks need a git work tree")
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 })
}
