package chain

import (
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// ReadLive reads config objects of a namespace live as a Store does, but says of states that are not verified that they are not.
func ReadLive(ctx context.Context, from configReader, c *Chain, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return c.loop.read(ctx, from, namespace, refs)
}

// Remembered is how many entries of objects are kept, for tests.
func (c *Chain) Remembered() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.history.held) + len(c.history.tracked) + len(c.history.contents)
}

// SetSpare lowers how many objects that are in no graph keep entries.
func (c *Chain) SetSpare(spare int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.spare = spare
}

// Kept is the size in bytes of the JSON of the objects that the watches keep.
func (c *Chain) Kept() int {
	size := 0
	for _, s := range c.evaluator.sources.all {
		for _, object := range s.bulk.Store().List() {
			text, _ := object.MarshalJSON()
			size += len(text)
		}
	}
	return size
}

// Nodes is how many nodes the graph has.
func (c *Chain) Nodes() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.graph.Len()
}

// ApplyPending waits until all is applied that is pending.
func (c *Chain) ApplyPending(ctx context.Context) { c.inbox.applyPending(ctx) }

// Due is how many digests are to be written, Contested of how many objects another writer has removed the digest, for tests that
// have waited for the goroutine of Start.
func (c *Chain) Due() int {
	due := 0
	for _, at := range c.evaluator.publisher.in {
		due += len(at.due)
	}
	return due
}

func (c *Chain) Contested() int { return len(c.evaluator.publisher.contested) }

// AwaitingKeys is how many digests wait for the digest keys.
func (c *Chain) AwaitingKeys() int { return len(c.evaluator.publisher.keys.unknown) }

// PublishedNamespaces is of how many namespaces digests are being written, or are to be written.
func (c *Chain) PublishedNamespaces() int { return len(c.evaluator.publisher.in) }

// RecheckBelow takes in what watches have not delivered of a custom resource, and of what is below it, as a Store does.
func RecheckBelow(ctx context.Context, from watchedConfig, c *Chain, namespace string, ref reference.Ref) error {
	return c.loop.recheckBelow(ctx, from, namespace, ref)
}
