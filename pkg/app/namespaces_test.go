package app

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Admission, and what publishes digests, ask for labels. They must not wait for a watch of namespaces that does not come about.
func TestLabelsOfNamespacesAreNotAwaited(t *testing.T) {
	t.Parallel()
	o := cacheOptions(selection(t))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	o.Scheme, o.Mapper = scheme.Scheme, mapper
	c, err := cache.New(&rest.Config{Host: "https://127.0.0.1:1"}, o) // no server listens there
	require.NoError(t, err)
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	_, err = c.GetInformer(t.Context(), namespace, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = c.Start(running) }()

	known := make(chan bool)
	go func() {
		// The informers start some time after Start was called.
		for range 20 {
			_, ok := (&namespaces{cache: c}).Labels("shop")
			assert.False(t, ok)
			<-time.After(10 * time.Millisecond)
		}
		close(known)
	}()
	select {
	case <-known:
	case <-time.After(patience):
		require.Fail(t, "it waits for the watch")
	}
}
