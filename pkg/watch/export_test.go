package watch

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// Handler gives the events that an informer sends rarely.
func (b *Bulk) Handler(ctx context.Context) cache.ResourceEventHandler { return b.handler(ctx) }

// Handler gives the events that an informer sends rarely.
func (s *Single) Handler(ctx context.Context) cache.ResourceEventHandler { return s.handler(ctx) }

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
