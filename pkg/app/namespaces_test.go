package app

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// Admission, and what publishes digests, ask for labels. They must not wait for a watch of namespaces that does not come about.
func TestLabelsOfNamespacesAreNotAwaited(t *testing.T) {
	t.Parallel()
	o := cacheOptions(selection())
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
			assert.False(t, ok, "no namespaces are listed yet")
			<-time.After(10 * time.Millisecond)
		}
		close(known)
	}()
	select {
	case <-known:
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for the watch")
	}
}

// An API server that calls the webhook has the labels of now.
func TestLabelsOfNamespacesAreNotKnownWhileTheirWatchFails(t *testing.T) {
	t.Parallel()
	monitor := &watchhealth.Monitor{}
	known := namespaces{failing: monitor.Failing, cache: fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}).Build()}
	watch := watchhealth.Watch{Resource: "namespaces"}

	labels, ok := known.CurrentLabels("shop")
	assert.True(t, ok, "the watch works")
	assert.Equal(t, map[string]string{"team": "shop"}, labels)
	monitor.Discovered(watch, errors.New("no route"))
	_, ok = known.CurrentLabels("shop")
	assert.False(t, ok, "they may have changed")
	_, ok = known.Labels("shop")
	assert.True(t, ok, "what the watch has delivered is there")
	monitor.Discovered(watch, nil)
	_, ok = known.CurrentLabels("shop")
	assert.True(t, ok, "the watch works again")
}
