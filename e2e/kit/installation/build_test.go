package installation_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// A killed go build can leave the beginning of an executable, which has the build ID of a complete one.
func TestBuildReplacesAnIncompleteExecutable(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for name, content := range map[string]string{
		"go.mod": "module example.org/small\n\ngo 1.26.0\n", "greeter/main.go": "package main\n\nfunc main() { print(\"hello\") }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	require.NoError(t, os.MkdirAll("e2e/tools", 0o755), "by which the root is found")
	complete := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "complete", "./greeter")
	complete.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := complete.CombinedOutput()
	require.NoError(t, err, string(output))
	content, err := os.ReadFile("complete")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("bin/e2e", 0o755))
	for _, incomplete := range []string{"bin/e2e/greeter", "bin/e2e/greeter.new"} {
		require.NoError(t, os.WriteFile(incomplete, content[:len(content)/2], 0o755))
	}

	program, err := installation.Build(t.Context(), "greeter")
	require.NoError(t, err)
	output, err = exec.CommandContext(t.Context(), program).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "hello", string(output))
}
