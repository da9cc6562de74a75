package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Heard is the last of the values of a log line of client-go that counts as the loss of a connection.
func Heard(ctx context.Context, values ...any) (connectionError error) {
	klog.FromContext(listen(ctx, func(err error) { connectionError = err })).Info("It happened", values...)
	return connectionError
}

// Handler gives the events that an informer sends rarely.
func (b *Bulk) Handler(ctx context.Context) cache.ResourceEventHandler { return b.handler(ctx) }

// Handler gives the events that an informer sends rarely.
func (s *Single) Handler(ctx context.Context) cache.ResourceEventHandler { return s.handler(ctx) }

// The steps of a Single that is not started, in whatever order.

// Learn puts a state of the object into the informer's cache.
func (s *Single) Learn(object *unstructured.Unstructured) error {
	return s.informer.GetStore().Update(object)
}

// Changed notes that the cache has changed.
func (s *Single) Changed() { s.inbox.put() }

// Sync notes that the cache is complete.
func (s *Single) Sync(mark func()) { s.inbox.open(s.Object, mark) }

// Deliver makes the callbacks that are due.
func (s *Single) Deliver(ctx context.Context) { s.deliver(ctx) }

// Kept lists the keys of the objects in the informer's cache, which is where
// their memory goes.
func (b *Bulk) Kept() []string { return b.informer.GetStore().ListKeys() }

// Cached is the object in the informer's cache, or nil.
func (b *Bulk) Cached(namespace, name string) *unstructured.Unstructured {
	found, _, _ := b.informer.GetStore().GetByKey(namespace + "/" + name)
	object, _ := found.(*unstructured.Unstructured)
	return object
}

// Kept is as of Bulk.
func (s *Single) Kept() []string { return s.informer.GetStore().ListKeys() }

// Nodes counts the nodes of the index.
func (s *Store) Nodes() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.root.count()
}

func (n *node) count() int {
	all := 1
	for _, child := range n.children {
		all += child.count()
	}
	return all
}
