package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain makes the test's executable the command itself when the test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_CLUSTER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEndedClusterLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{
		"on Ctrl-C":  syscall.SIGINT,
		"on kill":    syscall.SIGTERM,
		"on kill -9": syscall.SIGKILL, // the kernel and the janitor clean up
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := exec.CommandContext(t.Context(), os.Args[0])
			cluster.Env = append(os.Environ(), "BE_THE_CLUSTER=1")
			cluster.Stderr = t.Output()
			stdout, err := cluster.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cluster.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			kubeconfig, found := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
			require.True(t, found, line)
			require.FileExists(t, kubeconfig)
			require.Len(t, processesOf(t, filepath.Dir(kubeconfig)), 6, "five components and the janitor")

			require.NoError(t, cluster.Process.Signal(signal))
			_ = cluster.Wait()
			if signal != syscall.SIGKILL {
				assert.Zero(t, cluster.ProcessState.ExitCode())
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.NoDirExists(c, filepath.Dir(kubeconfig))
				assert.Empty(c, processesOf(t, filepath.Dir(kubeconfig)))
			}, 2*time.Minute, 20*time.Millisecond)
		})
	}
}

// processesOf finds the running processes that have a directory in their arguments.
func processesOf(t *testing.T, dir string) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var pids []int
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(dir)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		require.NoError(t, err, path)
		pids = append(pids, pid)
	}
	return pids
}
