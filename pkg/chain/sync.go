package chain

import (
	"context"
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// WaitForSync waits until every resource that can be read has been read once, and what it refers to. It is for programs that
// look once. The error is the context's.
func (c *Chain) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sync opens WaitForSync when nothing is under way.
func (c *Chain) sync() {
	select {
	case <-c.synced:
		return
	default:
	}
	if !c.configured || c.graph == nil && len(c.owned.sources) > 0 {
		return
	}
	for _, s := range c.owned.sources {
		if s.state == referent.SourceUnsynced {
			return
		}
	}
	for _, r := range c.owned.reads {
		if len(r.wanted) > 0 || r.inFlight != nil {
			return
		}
	}
	close(c.synced)
}

// Picture shows the graph below some objects, as they are written in an annotation of a namespace; without objects, all of it.
func (c *Chain) Picture(namespace string, objects ...string) (referent.Picture, error) {
	c.answers.RLock()
	defer c.answers.RUnlock()
	var roots []referent.Key
	for _, object := range objects {
		root, err := c.schema.ParseKey(namespace, object)
		if err != nil {
			return referent.Picture{}, err
		}
		roots = append(roots, root)
	}
	if c.graph == nil {
		return referent.Picture{}, nil
	}
	for _, root := range roots {
		if len(c.graph.Below(root)) == 0 {
			return referent.Picture{}, fmt.Errorf("%s: %s", root.In(""), describe(c.graph.Hold(root), root))
		}
	}
	return c.graph.Picture(roots...), nil
}
