package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func selection(namespaces ...string) options.Selection {
	keys := annotation.DefaultKeys()
	return options.Selection{
		Keys: keys, Kinds: workload.NewKinds(workload.Builtin()...), Scope: scope.Scope{Namespaces: namespaces},
	}
}

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
			o := cacheOptions(selection(namespaces...))
			assert.Len(t, o.DefaultNamespaces, len(namespaces), "permissions and caches are per namespace")
			o.Scheme, o.Mapper = scheme.Scheme, mapper
			c, err := cache.New(&rest.Config{Host: "https://127.0.0.1:1"}, o) // no server listens there, and no request is sent
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
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"team": "x"},
		Annotations: map[string]string{"big": "one"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	_, err := prune(namespace)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"team": "x"}, namespace.Labels, "selectors look at them")
	assert.Empty(t, namespace.Annotations)
	assert.Empty(t, namespace.ManagedFields)

	other, err := prune("a tombstone")
	require.NoError(t, err)
	assert.Equal(t, "a tombstone", other, "what it does not know it passes on")
}

// What a pause of ours needs to end is kept where Reloader's annotations are not read any more, also under another name.
func TestKeepOfPauses(t *testing.T) {
	t.Parallel()
	for name, pausedAt := range map[string]string{
		"DefaultName": "deployment.reloader.stakater.com/paused-at",
		"OtherName":   "example.org/since",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := selection()
			s.WithoutStakater, s.Stakater.Keys = true, annotation.NewStakaterKeys()
			s.Stakater.Keys.PausedAt = pausedAt
			k := keep(s)
			assert.True(t, k.Annotation(pausedAt), "without it the Deployment stays paused")
			assert.True(t, k.Annotation("deployment.reloader.stakater.com/pause-period"), "else the pause ends too early")
			assert.False(t, k.Annotation("reloader.stakater.com/auto"), "annotations of Reloader are off")
			assert.Equal(t, s.Stakater.Keys.PausePeriod, unreadPausePeriod(s), "no dialect reads the period")
			assert.Empty(t, keptPause(s), "it may be one of Reloader")
			s.WithoutStakater = false
			assert.Equal(t, pausedAt, keptPause(s))
		})
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	s := selection()
	s.Scope.ObjectSelector = labels.SelectorFromSet(labels.Set{"tier": "web"})
	k := keep(s)
	for key, kept := range map[string]bool{
		"pod-reloader.cs.sap.com/configmaps":               true,
		"pod-reloader.cs.sap.com/anything":                 true,
		"secret.reloader.stakater.com/reload":              true,
		"reloader.stakater.com/auto":                       true,
		"kubectl.kubernetes.io/last-applied-configuration": false,
	} {
		assert.Equal(t, kept, k.Annotation(key), key)
	}
	for key, kept := range map[string]bool{
		"pod-reloader.cs.sap.com/ignored": true, "pod-reloader.cs.sap.com/disabled": true, "tier": true, "app": false,
	} {
		assert.Equal(t, kept, k.Label(key), key)
	}
	assert.False(t, keep(selection()).Label("tier"), "no selector looks at it")
	assert.Empty(t, unreadPausePeriod(s), "a dialect reads the period of pauses")
}
