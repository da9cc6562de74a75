package controlplane_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

func newDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

func TestKubectlReportsTheVersion(t *testing.T) {
	t.Parallel()
	out, err := cp.Kubectl(t.Context(), "version")
	require.NoError(t, err)
	assert.Contains(t, out, "Server Version: v"+cp.Version()+".")
	assert.Contains(t, out, "Client Version: v"+cp.Version()+".")
}

func TestTwoControlPlanesAtOnce(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	second := controlplane.New(t, controlplane.Options{
		Nodes: 1, Without: []string{controlplane.Scheduler}, KeepLogs: logs,
	})
	assert.NotEqual(t, cp.Address(), second.Address())
	require.NoError(t, second.Apply(t.Context(), "{apiVersion: v1, kind: Namespace, metadata: {name: only-here}}"))

	err := cp.Client().Get(t.Context(), client.ObjectKey{Name: "only-here"}, &corev1.Namespace{})
	assert.True(t, client.IgnoreNotFound(err) == nil && err != nil, "the other one knows nothing of it: %v", err)
	assert.Nil(t, second.Component(controlplane.Scheduler))
	var nodes corev1.NodeList
	require.NoError(t, second.Client().List(t.Context(), &nodes))
	assert.Len(t, nodes.Items, 1)

	require.NoError(t, second.Stop())
	require.NoError(t, second.Stop(), "again is no error")
	kept, err := filepath.Glob(filepath.Join(logs, "*", "kube-apiserver.log"))
	require.NoError(t, err)
	assert.Len(t, kept, 1, "logs that are asked for stay")
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	doomed := controlplane.New(t, controlplane.Options{})
	pids := map[string]int{}
	for _, name := range []string{
		controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK,
	} {
		pids[name] = doomed.Component(name).PID()
		require.DirExists(t, procPath(pids[name]))
	}
	further, err := doomed.StartProcess(t.Context(), controlplane.Program{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}})
	require.NoError(t, err)
	pids["sleep"] = further.PID()

	require.NoError(t, doomed.Stop())
	for name, pid := range pids {
		assert.NoDirExists(t, procPath(pid), name)
	}
	assert.NoDirExists(t, doomed.Dir())
}

func TestFailedStartReportsTheCauseAndLeavesNothing(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		Args:     map[string][]string{controlplane.APIServer: {"--no-such-flag"}},
		KeepLogs: logs,
	})
	require.ErrorContains(t, err, "start kube-apiserver")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag", "the end of the log is in the error")
	entries, err := os.ReadDir(logs)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.NoDirExists(t, filepath.Join(filepath.Dir(cp.Dir()), entries[0].Name()))
}

func TestUnknownVersionFailsWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, err := controlplane.Start(t.Context(), controlplane.Options{Version: "1.1"})
	require.ErrorContains(t, err, `no tool "kubernetes-1.1": there are`)
	require.ErrorContains(t, err, "kubernetes-"+controlplane.Oldest)
	require.ErrorContains(t, err, "kubernetes-"+controlplane.Newest)
}
