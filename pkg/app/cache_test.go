package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func selection(t *testing.T, namespaces ...string) options.Selection {
	t.Helper()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	return options.Selection{
		Keys: keys, Kinds: workload.NewKinds(workload.Builtin()...), Scope: scope.Scope{Namespaces: namespaces},
	}
}

func builtin() workload.Kinds { return workload.NewKinds(workload.Builtin()...) }

func TestCacheOptions(t *testing.T) {
	t.Parallel()
	all := cacheOptions(selection(t), builtin)
	assert.True(t, all.ReaderFailOnMissingInformer, "a Get of a Secret through the cache must fail")
	assert.Nil(t, all.DefaultNamespaces)
	some := cacheOptions(selection(t, "a", "b"), builtin)
	assert.Len(t, some.DefaultNamespaces, 2, "rights and caches are per namespace")
}

func TestPrune(t *testing.T) {
	t.Parallel()
	applied := map[string]any{
		"kubectl.kubernetes.io/last-applied-configuration": "all of it",
		"pod-reloader.cs.sap.com/configmaps":               "app",
		"reloader.stakater.com/auto":                       "true",
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "cart", "namespace": "shop", "annotations": applied, "managedFields": []any{"much"}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "cart:1"}}}}},
		"status":   map[string]any{"replicas": int64(3)},
	}}
	transform := prune(selection(t), builtin)
	got, err := transform(deployment)
	require.NoError(t, err)
	u, ok := got.(*unstructured.Unstructured)
	require.True(t, ok)
	assert.Equal(t, map[string]string{"pod-reloader.cs.sap.com/configmaps": "app", "reloader.stakater.com/auto": "true"}, u.GetAnnotations())
	assert.Equal(t, "cart", u.GetName())
	assert.Empty(t, u.GetManagedFields())
	assert.NotContains(t, u.Object, "status")

	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"team": "x"},
		Annotations: map[string]string{"big": "one"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	_, err = transform(namespace)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"team": "x"}, namespace.Labels, "selectors look at them")
	assert.Empty(t, namespace.Annotations)
	assert.Empty(t, namespace.ManagedFields)

	other, err := transform("a tombstone")
	require.NoError(t, err)
	assert.Equal(t, "a tombstone", other, "what it does not know it passes on")
}
