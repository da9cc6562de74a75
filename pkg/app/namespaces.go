package app

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaces knows the labels of namespaces where the loop watches them, for the webhook.
type namespaces struct {
	// cache is set before the webhook is served.
	cache client.Reader
	// failing reports whether the watch of a resource fails.
	failing func(resource, namespace string) bool
}

// CurrentLabels is Labels where the watch works: while it fails, a namespace may have come into the scope since.
func (n *namespaces) CurrentLabels(name string) (map[string]string, bool) {
	if n.failing("namespaces", "") {
		return nil, false
	}
	return n.Labels(name)
}

// Labels returns the labels of a namespace from the cache; false where that does not have it (yet). It sends no request: a
// cache that does not watch namespaces answers with an error, and one that has not read them yet is not awaited.
func (n *namespaces) Labels(name string) (map[string]string, bool) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ended, end := context.WithCancel(context.Background())
	end()
	if n.cache == nil || n.cache.Get(ended, client.ObjectKey{Name: name}, namespace) != nil {
		return nil, false
	}
	return namespace.Labels, true
}
