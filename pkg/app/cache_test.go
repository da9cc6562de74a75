package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Payloads of config objects must never get into a cache, not by mistake either.
func TestCacheRefusesPayloads(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "SecretList", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for name, namespaces := range map[string][]string{"AllNamespaces": nil, "SomeNamespaces": {"shop", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := cacheOptions(selection(t, namespaces...), builtin)
			assert.Len(t, o.DefaultNamespaces, len(namespaces), "rights and caches are per namespace")
			o.Scheme, o.Mapper = scheme.Scheme, mapper
			c, err := cache.New(&rest.Config{Host: "https://127.0.0.1:1"}, o) // nobody is there, and nobody is asked
			require.NoError(t, err)
			untyped := &unstructured.Unstructured{}
			untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			var uncached *cache.ErrResourceNotCached
			for _, object := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, untyped} {
				err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db"}, object)
				require.ErrorAs(t, err, &uncached, "a Get of a %T fills the memory with payloads", object)
			}
			require.ErrorAs(t, c.List(t.Context(), &corev1.SecretList{}), &uncached, "a List of Secrets fills the memory with payloads")
		})
	}
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
