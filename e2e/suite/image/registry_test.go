package image_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// serving is the line that says where the registry listens.
var serving = regexp.MustCompile(`serving on port (\d+)`)

// serveRegistry runs a registry until the end of the test, and returns its address.
func serveRegistry(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), tool(t, "crane"), "registry", "serve", "--address", "127.0.0.1:0")
	log, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(log)
	port := ""
	for port == "" && lines.Scan() {
		if match := serving.FindStringSubmatch(lines.Text()); match != nil {
			port = match[1]
		}
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGKILL)
		_ = command.Wait()
	})
	require.NotEmpty(t, port, "the registry does not say its port: %v", lines.Err())
	go func() {
		for lines.Scan() { // or it would block once the pipe is full
		}
	}()
	return "127.0.0.1:" + port
}

// run returns what a command prints. Images are kept in plain directories, which works in a container, and without root.
func run(t *testing.T, name string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Env = append(os.Environ(), "STORAGE_DRIVER=vfs", "BUILDAH_ISOLATION=chroot")
	said, err := command.CombinedOutput()
	return string(said), err
}

// output is what a command prints to standard output.
func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	said, err := command.Output()
	require.NoError(t, err, "%s", command)
	return string(said)
}

// tool is the path of a pinned program.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir, err := toolchain.Builder{}.Build(t.Context(), name)
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := toolchain.Root()
	require.NoError(t, err)
	return dir
}
