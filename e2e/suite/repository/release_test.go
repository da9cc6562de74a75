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

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
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
	if runtime.GOOS == "linux" { // for which images are
		publishWithStubs(t, source, version)
	}
	assert.ElementsMatch(t, append(withChecksum(t, source), "dist/SHA256SUMS"), uploaded(t, source), "the release has what the checksums are of")
}

// publishWithStubs runs make publish on programs in the place of the engine, crane and helm push, none of which changes the directory.
func publishWithStubs(t *testing.T, source, version string) {
	t.Helper()
	writeAll(t, source, map[string]string{
		"bin/crane/crane": "#!/bin/sh\n",
		"bin/helm/helm":   "#!/bin/sh\ncase $1 in push) [ -s \"$2\" ];; *) exec " + tool(t, "helm", "helm") + " \"$@\";; esac\n",
	})
	for _, stub := range []string{"bin/crane/crane", "bin/helm/helm"} {
		require.NoError(t, os.Chmod(filepath.Join(source, stub), 0o700))
	}
	output, err := runMake(t, source, nil, "--assume-old=release-tools", "publish", "VERSION="+version, "REGISTRY=registry.example.com",
		"ENGINE=true", "IMAGE_PLATFORMS=linux/"+runtime.GOARCH)
	require.NoError(t, err, output)
}

// withChecksum are the files that SHA256SUMS is of.
func withChecksum(t *testing.T, source string) []string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(source, "dist", "SHA256SUMS"))
	require.NoError(t, err)
	var files []string
	for line := range strings.Lines(string(sums)) {
		files = append(files, "dist/"+strings.Fields(line)[1])
	}
	return files
}

// uploaded are the files that the workflow adds to a release.
func uploaded(t *testing.T, source string) []string {
	t.Helper()
	var files []string
	for _, step := range workflows(t)[".github/workflows/release.yaml"].Jobs["release"].Steps {
		if !strings.HasPrefix(step.Run, "gh release create ") {
			continue
		}
		for _, word := range strings.Fields(step.Run) {
			if !strings.HasPrefix(word, "dist/") {
				continue
			}
			matches, err := filepath.Glob(filepath.Join(source, word))
			require.NoError(t, err)
			for _, match := range matches {
				file, err := filepath.Rel(source, match)
				require.NoError(t, err)
				files = append(files, file)
			}
		}
	}
	return files
}

// copyOf is a directory with the tracked files, and a repository around them: make verify-build asks git which these are.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range trackedFiles(t) {
		content, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), file))
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
