package toolchain_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// newRepository has one tool, "greeter", which needs no other module.
func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "go.mod", "module example.org/root\n\ngo 1.26.0\n")
	write(t, root, "e2e/tools/greeter/go.mod", "module example.org/greeter\n\ngo 1.26.0\n")
	write(t, root, "e2e/tools/greeter/hello/main.go", "package main\n\nfunc main() { print(\"hello\") }\n")
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// builds counts the builds in a progress report.
func builds(progress *bytes.Buffer) int {
	return strings.Count(progress.String(), "built greeter")
}

func TestBuildsOnlyWhenThePinChanges(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	var progress bytes.Buffer
	builder := toolchain.Builder{Root: root, Progress: &progress}

	dir, err := builder.Build(t.Context(), "greeter")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, "bin", "greeter"), dir)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "hello")).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "hello", string(out))
	assert.Equal(t, 1, builds(&progress))

	_, err = builder.Build(t.Context(), "greeter")
	require.NoError(t, err)
	assert.Equal(t, 1, builds(&progress), "nothing changed")

	for reason, change := range map[string][2]string{
		"the pins changed":    {"go.mod", "module example.org/greeter\n\ngo 1.26.0\n\n// another pin\n"},
		"the sources changed": {"hello/main.go", "package main\n\nfunc main() { print(\"good day\") }\n"},
	} {
		before := builds(&progress)
		write(t, root, "e2e/tools/greeter/"+change[0], change[1])
		_, err = builder.Build(t.Context(), "greeter")
		require.NoError(t, err)
		assert.Equal(t, before+1, builds(&progress), reason)
	}
	out, err = exec.CommandContext(t.Context(), filepath.Join(dir, "hello")).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "good day", string(out))
}

func TestConcurrentCallersShareOneBuild(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	progress := make([]bytes.Buffer, 4)
	var callers sync.WaitGroup
	for i := range progress {
		callers.Go(func() {
			_, err := toolchain.Builder{Root: root, Progress: &progress[i]}.Build(t.Context(), "greeter")
			assert.NoError(t, err)
		})
	}
	callers.Wait()
	total := 0
	for i := range progress {
		total += builds(&progress[i])
	}
	assert.Equal(t, 1, total)
}

func TestFailedBuildReportsItsOutput(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	write(t, root, "e2e/tools/greeter/hello/main.go", "package main\n\nfunc main() { undeclared() }\n")
	var progress bytes.Buffer
	builder := toolchain.Builder{Root: root, Progress: &progress}

	_, err := builder.Build(t.Context(), "greeter")
	require.ErrorContains(t, err, "undefined: undeclared")
	assert.NoFileExists(t, filepath.Join(root, "bin", "greeter", "hello"))

	write(t, root, "e2e/tools/greeter/hello/main.go", "package main\n\nfunc main() {}\n")
	_, err = builder.Build(t.Context(), "greeter")
	require.NoError(t, err, "a failed build does not block the next")
}

// Another process that builds takes minutes.
func TestWaitForAnotherProcessIsReported(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	write(t, root, "bin/greeter.lock", "")
	other, err := os.Open(filepath.Join(root, "bin", "greeter.lock"))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX))
	lines, progress := io.Pipe()
	built := make(chan error, 1)
	go func() {
		_, err := toolchain.Builder{Root: root, Progress: progress}.Build(t.Context(), "greeter")
		_ = progress.Close()
		built <- err
	}()
	reader := bufio.NewReader(lines)
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "waiting for another process that builds greeter ...\n", line)
	require.NoError(t, other.Close())
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, <-built)
	assert.NotContains(t, string(rest), "waiting", "once")
}

// A go command that is killed leaves what it has written.
func TestInterruptedBuildLeavesNoTemporaryFiles(t *testing.T) {
	root, temporary := newRepository(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("GOCACHE", t.TempDir()) // so that the build takes a while
	ctx, cancel := context.WithCancel(t.Context())
	built := make(chan error, 1)
	go func() {
		_, err := toolchain.Builder{Root: root, Progress: io.Discard}.Build(ctx, "greeter")
		built <- err
	}()
	left := func() []string {
		var files []string
		for _, dir := range []string{temporary, filepath.Join(root, "bin", ".*.tmp")} {
			matches, err := filepath.Glob(filepath.Join(dir, "go-build*", "b*", "*"))
			require.NoError(t, err)
			files = append(files, matches...)
		}
		return files
	}
	require.NoError(t, poll.Until(t.Context(), "the build", 10*time.Millisecond, func(context.Context) error {
		if len(left()) == 0 {
			return errors.New("there is nothing built yet")
		}
		return nil
	}))
	cancel()
	require.Error(t, <-built)
	assert.Empty(t, left())
}

func TestProblemOfAPinHasTheTextOfGo(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	write(t, root, "e2e/tools/greeter/go.mod", "modul example.org/greeter\n")
	_, err := toolchain.Builder{Root: root, Progress: io.Discard}.Build(t.Context(), "greeter")
	require.ErrorContains(t, err, "unknown directive: modul")
}

func TestUnknownToolFailsWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	builder := toolchain.Builder{Root: newRepository(t)}
	names, err := builder.Names()
	require.NoError(t, err)
	assert.Equal(t, []string{"greeter"}, names)

	_, err = builder.Build(t.Context(), "gretter")
	require.ErrorContains(t, err, `no tool "gretter": there are greeter`)
}

func TestFindsTheRootFromAPackage(t *testing.T) {
	t.Parallel()
	root, err := toolchain.Root()
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(root, "e2e", "tools", "etcd", "go.mod"))
}
