package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

func procPath(pid int) string { return fmt.Sprintf("/proc/%d", pid) }

func TestComponentsCanBeRestartedDelayedAndFrozen(t *testing.T) {
	t.Parallel()
	own := controlplane.New(t, controlplane.Options{Nodes: 1, Proxied: []string{
		controlplane.Etcd, controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK,
	}})
	namespace := own.Namespace(t)
	require.NoError(t, own.Apply(t.Context(), configMap(namespace, "kept")))

	for _, name := range []string{controlplane.APIServer, controlplane.Etcd} {
		p := own.Component(name)
		before := p.PID()
		require.NoError(t, p.Restart(t.Context()))
		assert.NotEqual(t, before, p.PID())
		assert.NoDirExists(t, procPath(before))
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		key := client.ObjectKey{Namespace: namespace, Name: "kept"}
		assert.NoError(c, own.Client().Get(t.Context(), key, &corev1.ConfigMap{}), "a restart keeps the data")
	}, timeout, tick)

	own.Proxy(controlplane.Etcd).SetDelay(100 * time.Millisecond)
	begun := time.Now()
	require.NoError(t, own.Apply(t.Context(), configMap(namespace, "slow")))
	assert.GreaterOrEqual(t, time.Since(begun), 200*time.Millisecond, "etcd is far away")
	own.Proxy(controlplane.Etcd).SetDelay(0)

	apiserver := own.Component(controlplane.APIServer)
	apiserver.Freeze()
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := own.Client().Get(brief, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	require.ErrorIs(t, err, context.DeadlineExceeded, "a frozen one does not answer")
	apiserver.Thaw()
	require.NoError(t, own.Client().Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))

	apiserver.Kill()
	assert.Zero(t, apiserver.PID())
	require.NoError(t, apiserver.Start(t.Context()))
	require.NoError(t, own.Client().Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))

	const delay = 200 * time.Millisecond
	for _, name := range []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK} {
		p, attempts := own.Component(name), 1
		if name == controlplane.KWOK {
			attempts = 5 // it ends now and then before it is ready, where there are nodes: see startKWOK
		}
		require.NoError(t, p.Stop(t.Context()))
		var err error
		poll.Repeat(t, attempts, name+" ended at its start", func(int) bool {
			err = p.Start(t.Context())
			return err == nil
		})
		require.NoError(t, err)
		own.Proxy(name).SetDelay(delay)
	}
	begun = time.Now()
	require.NoError(t, own.Client().Create(t.Context(), newDeployment(namespace)))
	_, err = own.Kubectl(t.Context(), "rollout", "status", "-n", namespace, "deployment/web", "--timeout="+timeout.String())
	require.NoError(t, err, "all of them work again")
	assert.GreaterOrEqual(t, time.Since(begun), 6*delay, "each component gets the change late, and answers late")
}

func TestProcess(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	shell := func(name, script string) controlplane.Program {
		return controlplane.Program{Name: name, Path: "/bin/sh", Args: []string{"-c", script}}
	}

	t.Run("ends by itself", func(t *testing.T) {
		t.Parallel()
		p, err := cp.StartProcess(t.Context(), shell("short", "echo done; exit 3"))
		require.NoError(t, err)
		<-p.Exited()
		assert.Equal(t, 3, p.ExitCode())
		assert.Zero(t, p.PID())
		log, err := os.ReadFile(p.LogPath())
		require.NoError(t, err)
		assert.Equal(t, "done\n", string(log))
		require.NoError(t, p.Stop(t.Context()), "it is stopped already")
	})
	t.Run("ends on SIGTERM, frozen or not", func(t *testing.T) {
		t.Parallel()
		p, err := cp.StartProcess(t.Context(), controlplane.Program{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}})
		require.NoError(t, err)
		require.ErrorContains(t, p.Start(t.Context()), "running already")
		memory, err := p.ResidentMemory()
		require.NoError(t, err)
		assert.Positive(t, memory)
		p.Freeze()
		status, err := os.ReadFile(filepath.Join(procPath(p.PID()), "status"))
		require.NoError(t, err)
		assert.Contains(t, string(status), "State:\tT", "it has stopped when Freeze returns")
		require.NoError(t, p.Stop(t.Context()))
		assert.Equal(t, -1, p.ExitCode(), "a signal ended it")
	})
	t.Run("is killed when it does not end", func(t *testing.T) {
		t.Parallel()
		program := shell("stubborn", "trap '' TERM; touch "+started+"; while :; do sleep 0.05; done")
		program.Ready = func(context.Context) error {
			_, err := os.Stat(started)
			return err
		}
		program.Grace = 100 * time.Millisecond
		p, err := cp.StartProcess(t.Context(), program)
		require.NoError(t, err)
		require.ErrorContains(t, p.Stop(t.Context()), "did not end within 100ms")
		assert.Zero(t, p.PID())
	})
	t.Run("ends before it is ready", func(t *testing.T) {
		t.Parallel()
		program := shell("hopeless", "echo no such luck; exit 1")
		program.Ready = func(context.Context) error { return assert.AnError }
		_, err := cp.StartProcess(t.Context(), program)
		require.ErrorContains(t, err, "ended before it was ready")
		require.ErrorContains(t, err, "no such luck", "the end of its log")
	})
	t.Run("is never ready", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		program := shell("slow", "sleep 1000")
		program.Ready = func(context.Context) error { return assert.AnError }
		p, err := cp.StartProcess(ctx, program)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, p.PID(), "nothing is left running")
		_, err = cp.StartProcess(t.Context(), program)
		require.ErrorContains(t, err, "there is a process of that name")
	})
}

func TestProcessInheritsNoSettings(t *testing.T) {
	for name, value := range map[string]string{"KUBERNETES_NAMESPACE": "elsewhere", "ALERT_ON_RELOAD": "true", "ETCD_NAME": "other", "GOGC": "77"} {
		t.Setenv(name, value)
	}
	p, err := cp.StartProcess(t.Context(), controlplane.Program{
		Name: "environment", Path: "/bin/sh", Args: []string{"-c", "env"}, Env: []string{"ALERT_SINK=slack"},
	})
	require.NoError(t, err)
	<-p.Exited()
	log, err := os.ReadFile(p.LogPath())
	require.NoError(t, err)
	variables := strings.Split(string(log), "\n")
	for _, want := range []string{"PATH=" + os.Getenv("PATH"), "GOGC=77", "ALERT_SINK=slack"} {
		assert.Contains(t, variables, want)
	}
	for _, other := range []string{"KUBERNETES_NAMESPACE=", "ALERT_ON_RELOAD=", "ETCD_NAME="} {
		assert.NotContains(t, string(log), other)
	}
}

func configMap(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %s, name: %s}
data: {key: value}
`, namespace, name)
}
