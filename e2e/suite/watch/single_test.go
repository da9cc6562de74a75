package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// states is what a Single has called back with: resourceVersions, "" for none.
type states chan string

func (s states) add(_ context.Context, object *unstructured.Unstructured) error {
	if object == nil {
		s <- ""
	} else {
		s <- object.GetResourceVersion()
	}
	return nil
}

// next waits for a callback.
func (s states) next(t *testing.T) string {
	t.Helper()
	select {
	case version := <-s:
		return version
	case <-time.After(patience):
		require.FailNow(t, "no callback")
		return ""
	}
}

func startSingle(t *testing.T, wire *line, gvr schema.GroupVersionResource, namespace, name string) (*watch.Single, states) {
	t.Helper()
	seen := make(states, 100)
	single, err := watch.NewSingle(watch.SingleConfig{
		GVR: gvr, Namespace: namespace, Name: name, OnSyncComplete: seen.add, OnChange: seen.add,
	}, wire.client(t))
	require.NoError(t, err)
	start(t, single)
	require.NoError(t, single.WaitForSync(t.Context()))
	return single, seen
}

func version(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) string {
	t.Helper()
	found, err := (&line{}).client(t).Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return found.GetResourceVersion()
}

func TestSingleFollowsAConfigMap(t *testing.T) {
	ns := cp.Namespace(t)
	wire := &line{}
	single, seen := startSingle(t, wire, configMaps, ns, "config")
	assert.Empty(t, seen.next(t), "it does not exist")
	apply(t, configMap(ns, "config", "1"), configMap(ns, "other", "1"))
	assert.Equal(t, version(t, configMaps, ns, "config"), seen.next(t))
	apply(t, configMap(ns, "config", "2"))
	assert.Equal(t, version(t, configMaps, ns, "config"), seen.next(t), "a ConfigMap has no generation")
	assert.Equal(t, map[string]any{"key": "2"}, single.Object().Object["data"])

	wire.Cut(t)
	require.NoError(t, cp.Component(controlplane.APIServer).Restart(t.Context()))
	apply(t, configMap(ns, "config", "3"))
	await(t, true, func() bool { at, err := single.LastWatchError(); return !at.IsZero() && err != nil })
	wire.Mend()
	assert.Equal(t, version(t, configMaps, ns, "config"), seen.next(t), "the server is back")
	remove(t, configMaps, ns, "config")
	assert.Empty(t, seen.next(t), "it was deleted")
	assert.Empty(t, seen)
}

func TestSingleSkipsStatusOnlyUpdates(t *testing.T) {
	ns := cp.Namespace(t)
	apply(t, ingress(ns, "a", "x"))
	_, seen := startSingle(t, &line{}, ingresses, ns, "a")
	assert.Equal(t, version(t, ingresses, ns, "a"), seen.next(t))
	patch := []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	_, err := (&line{}).client(t).Resource(ingresses).Namespace(ns).
		Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	apply(t, ingress(ns, "a", "y")) // the barrier
	assert.Equal(t, version(t, ingresses, ns, "a"), seen.next(t), "the first thing after sync")
}

func TestSingleOfAClusterScopedObject(t *testing.T) {
	ns := cp.Namespace(t)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	single, seen := startSingle(t, &line{}, namespaces, "", ns)
	assert.Equal(t, version(t, namespaces, "", ns), seen.next(t))
	assert.Equal(t, ns, single.Object().GetName())
}

func TestNamespaceIsMissing(t *testing.T) {
	ns := cp.Namespace(t)
	widget := controlplane.CustomResource{Group: "watch.example.com", Kind: "Widget", Plural: "widgets", WithoutStatus: true}
	apply(t, configMap(ns, "there", "1"), widget.Definition())
	widgets := schema.GroupVersionResource{Group: "watch.example.com", Version: "v1", Resource: "widgets"}
	cases := map[string]struct {
		gvr  schema.GroupVersionResource
		name string
	}{
		"an object of the name":          {configMaps, "there"},
		"no object of the name":          {configMaps, "not-there"},
		"no object of a custom resource": {widgets, "not-there"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			single, err := watch.NewSingle(watch.SingleConfig{GVR: c.gvr, Name: c.name}, (&line{}).client(t))
			require.NoError(t, err)
			var fault *watch.ConfigError
			require.ErrorAs(t, single.Start(t.Context()), &fault)
			assert.Equal(t, "Namespace", fault.Field)
			require.ErrorAs(t, single.WaitForSync(t.Context()), &fault)
		})
	}
}

func TestSingleOfAClusterScopedObjectThatDoesNotExist(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, seen := startSingle(t, &line{}, namespaces, "", "not-there")
	assert.Empty(t, seen.next(t))
}
