package reloader_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// bare is the program as Reloader is started outside of a cluster: with its flags and variables, and a kubeconfig. It handles one
// namespace, which is its own, and no webhook is registered. All other settings have their defaults.
type bare struct {
	testing.TB
	client.Client
	namespace string
	watcher   *observe.Watcher
}

func newBare(t *testing.T, cp *controlplane.ControlPlane, namespace string) *bare {
	t.Helper()
	return &bare{TB: t, Client: cp.Client(), namespace: namespace, watcher: observe.New(t, cp.Admin(), namespace)}
}

func startBare(t *testing.T, cp *controlplane.ControlPlane, args ...string) *bare {
	t.Helper()
	b := newBare(t, cp, cp.Namespace(t))
	startProgram(b, cp, "bare-"+b.namespace, []string{"KUBECONFIG=" + cp.AdminKubeconfig(), "KUBERNETES_NAMESPACE=" + b.namespace}, args)
	b.awaitStart()
	return b
}

// startProgram starts the program with ports of its own, and returns the address of its metrics.
func startProgram(b *bare, cp *controlplane.ControlPlane, name string, env, args []string) (string, *controlplane.Process) {
	b.Helper()
	program, err := installation.Build(b.Context(), ".")
	require.NoError(b, err)
	metrics := freeAddress(b, cp)
	process, err := cp.StartProcess(b.Context(), controlplane.Program{
		Name: name, Path: program, Env: append(env, "RELOADER_DEPLOYMENT_NAME=reloader-reloader"),
		Args: append(slices.Clone(args), "--metrics-bind-address="+metrics,
			"--health-probe-bind-address="+freeAddress(b, cp), "--webhook-bind-address="+freeAddress(b, cp)),
		Ready: controlplane.URLReady("http://" + metrics + "/live"),
	})
	require.NoError(b, err)
	return metrics, process
}

func freeAddress(t testing.TB, cp *controlplane.ControlPlane) string {
	t.Helper()
	port, err := cp.FreePort()
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// awaitStart waits until the program treats what is created. It starts from what it finds of workloads that are older than itself,
// which is known to the second.
func (b *bare) awaitStart() {
	b.Helper()
	first := meeting{kind: "Deployment", on: map[string]string{fixture.ReloaderAuto: "true"}, labels: map[string]string{"reload": "true"}}
	b.createObjects("first", first)
	require.NoError(b, b.Create(b.Context(), first.manifest(b.namespace, "first")))
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(fixture.WorkloadKind(first.kind))
	b.await("the start", func() error {
		require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: "first"}, o))
		if o.GetAnnotations()[fixture.ConfigRecord] == "" {
			return errors.New("nothing is recorded")
		}
		if time.Since(o.GetCreationTimestamp().Time) < 2*time.Second {
			return errors.New("a second has not passed")
		}
		return nil
	})
}

// await waits as other tests do: how long a reload takes is not tested, on a machine that may be overloaded.
func (b *bare) await(what string, holds func() error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), fixture.Patience)
	defer cancel()
	require.NoError(b, poll.Until(ctx, what, interval, func(context.Context) error { return holds() }))
}

func (b *bare) createObjects(name string, m meeting) {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: name, Annotations: m.of, Labels: m.labels}
	require.NoError(b, b.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "1"}}))
	require.NoError(b, b.Create(b.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": "1"}}))
}

func (b *bare) merge(object client.Object, name, patch string) {
	b.Helper()
	object.SetNamespace(b.namespace)
	object.SetName(name)
	require.NoError(b, b.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func configMapTo(value string) func(*bare, string) {
	return func(b *bare, name string) { b.merge(&corev1.ConfigMap{}, name, `{"data":{"key":"`+value+`"}}`) }
}

func changedSecret(b *bare, name string) {
	b.merge(&corev1.Secret{}, name, `{"stringData":{"key":"2"}}`)
}

func labelsOnly(b *bare, name string) {
	b.merge(&corev1.ConfigMap{}, name, `{"metadata":{"labels":{"new":"label"},"annotations":{"new":"annotation"}}}`)
	b.merge(&corev1.Secret{}, name, `{"metadata":{"labels":{"new":"label"}}}`)
}

func deletion(b *bare, name string) {
	require.NoError(b, b.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
}

// wrote returns what Reloader's strategies have written on the pod template of a workload, by which its users recognize a reload.
func (b *bare) wrote(kind, name string) map[string]string {
	b.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(fixture.WorkloadKind(kind))
	require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, o))
	found := map[string]string{}
	if from, ok := fixture.TemplateAnnotations(o)[fixture.ReloadedFrom]; ok {
		found[fixture.ReloadedFrom] = from
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		variables, _ := container.(map[string]any)["env"].([]any)
		for _, variable := range variables {
			fields := variable.(map[string]any)
			if name := fields["name"].(string); strings.HasPrefix(name, "STAKATER_") {
				found[name], _ = fields["value"].(string)
			}
		}
	}
	return found
}

// changes asserts how many changes of its pod template a workload has had, of a kind that is observed.
func (b *bare) changes(kind, name string, least, most int) {
	b.Helper()
	if !slices.ContainsFunc(observe.Builtin(), func(k observe.Kind) bool { return k.Name == kind }) {
		return
	}
	ctx, cancel := context.WithTimeout(b.Context(), fixture.Patience)
	defer cancel()
	require.NoError(b, b.watcher.Sync(ctx))
	w := observe.Workload{Kind: kind, Namespace: b.namespace, Name: name}
	assert.Positive(b, b.watcher.Versions(w), "%s is observed", w)
	changes := b.watcher.Changes(w)
	assert.True(b, least <= len(changes) && len(changes) <= most, "%s has had %d changes: %v", w, len(changes), changes)
}
