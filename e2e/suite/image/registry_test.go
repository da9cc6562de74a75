package image_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// serving is the line that says where the registry listens.
var serving = regexp.MustCompile(`serving on port (\d+)`)

// untilInputEnds runs a program until the end of its input, which comes at the latest with the end of this process, whatever ends it.
const untilInputEnds = `
"$@" &
exec 2>/dev/null
cat >/dev/null
kill -9 $!
`

// serveRegistry runs a registry until the end of the test, and returns its address.
func serveRegistry(t *testing.T) string {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", untilInputEnds, "registry", tool(t, "crane"), "registry", "serve", "--address", "127.0.0.1:0")
	input, err := command.StdinPipe()
	require.NoError(t, err)
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
		_ = input.Close()
		_ = command.Wait()
	})
	require.NotEmpty(t, port, "the registry does not say its port: %v", lines.Err())
	go func() {
		for lines.Scan() { // or it would block once the pipe is full
		}
	}()
	return "127.0.0.1:" + port
}

// The test may be killed, as after a time limit.
func TestRegistryEndsWithItsProcess(t *testing.T) {
	const variable = "SERVE_REGISTRY_AND_DIE"
	if os.Getenv(variable) != "" {
		fmt.Println("serving at " + serveRegistry(t))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		<-t.Context().Done()
	}
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), variable+"=1")
	said, err := command.Output()
	require.ErrorContains(t, err, "signal: killed")
	_, address, found := strings.Cut(strings.TrimSpace(string(said)), "serving at ")
	require.True(t, found, string(said))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, poll.Until(ctx, "the end of the registry", 20*time.Millisecond, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return errors.Join(errors.New("it still accepts connections"), connection.Close())
		}
		return nil
	}))
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
