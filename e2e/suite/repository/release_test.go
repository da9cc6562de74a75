package repository

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A copy of the repository, without git, is released for this platform, and then again elsewhere. What is compiled for the
// packages comes out of the cache here; make verify-build uses an empty one when it is run by hand or for a release.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	const version = "v1.2.3-test.1"
	platform := runtime.GOOS + "/" + runtime.GOARCH
	source := copyOf(t)
	command := exec.CommandContext(t.Context(), "make", "-C", source, "verify-build", "VERSION="+version, "PLATFORMS="+platform, "VERIFY_CACHE="+strings.TrimSpace(string(cache)))
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	program := "pod-reloader-" + runtime.GOOS + "-" + runtime.GOARCH
	assert.Contains(t, string(output), program+": OK")

	said, err := exec.CommandContext(t.Context(), filepath.Join(source, "dist", program), "version").Output()
	require.NoError(t, err)
	assert.Contains(t, string(said), "pod-reloader "+version)
	assert.Contains(t, modulesIn(t, filepath.Join(source, "dist", program+".cdx.json")), "k8s.io/client-go")
}

// copyOf is a directory with the tracked files, and a repository around them: make verify-build asks git which these are.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range trackedFiles(t) {
		content, err := os.ReadFile(filepath.Join(root(t), file))
		require.NoError(t, err)
		target := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, content, 0o600))
	}
	output, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", dir).CombinedOutput()
	require.NoError(t, err, string(output))
	return dir
}

// modulesIn are the names of the components of a bill of materials.
func modulesIn(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var bill struct {
		Components []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal(content, &bill))
	names := make([]string, 0, len(bill.Components))
	for _, c := range bill.Components {
		names = append(names, c.Name)
	}
	return names
}
