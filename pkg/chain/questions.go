package chain

import (
	"context"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// State returns the state of a custom resource that a workload of a namespace tracks. While it is held, or missing, the state
// has a Hold and no Entries. The handlers are called when it changes.
func (c *Chain) State(namespace string, ref reference.Ref) digest.State {
	state, key, unseen := c.graphState.state(namespace, ref)
	if unseen {
		c.graphState.record([]referent.Change{{Key: key, Held: true}})
		c.reportLate([]referent.Key{key})
	}
	return state
}

// Check says why the objects of a resource cannot be tracked; nil if they can, and before the configuration has been read.
func (c *Chain) Check(kind reference.Kind) error { return c.graphState.check(kind) }

// Workload finds the custom resources that a workload runs with without naming them; it is an annotation.Finder.
func (c *Chain) Workload(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
	rules := c.graphState.rules.Load()
	if rules == nil {
		return nil, nil, false
	}
	owned, labelled = rules.Workload(labels, owners)
	return owned, labelled, true
}

// Exists reports whether there is an object of a custom resource, as far as the watches have delivered it. Before they have, or
// where they may not, what is recorded is tracked and held; anything else is reported when it is delivered.
func (c *Chain) Exists(namespace string, ref reference.Ref) bool {
	return c.graphState.exists(namespace, ref)
}

// Referred returns the config objects, by namespace, to which custom resources refer; those that may not be watched are left out. What
// happens to them is no concern of an index of workloads: what stands in for a watch that fails has to know them.
func (c *Chain) Referred() map[string][]reference.Ref {
	referred := map[string][]reference.Ref{}
	for _, key := range c.graphState.configObjects() {
		if ref, ok := key.Ref(); ok && !namespaces(c.options.Namespaces).outside(key.Namespace) {
			referred[key.Namespace] = append(referred[key.Namespace], ref)
		}
	}
	return referred
}

// Path returns the objects that lead up to a custom resource that a workload of a namespace tracks. It begins with the cause and
// ends with the resource. The cause is an object, as Because of a State names it; the empty one is what the resource is held for.
// Path returns nil if the cause is not below the resource, or is the resource itself.
func (c *Chain) Path(namespace string, ref reference.Ref, cause string) []string {
	keys := c.graphState.path(namespace, ref, cause)
	if len(keys) < 2 {
		return nil
	}
	path := make([]string, 0, len(keys))
	for i := range keys {
		path = append(path, keys[len(keys)-1-i].In(namespace))
	}
	return path
}

// Picture shows the graph below some objects, as they are written in an annotation of a namespace; without objects, all of it.
func (c *Chain) Picture(namespace string, objects ...string) (referent.Picture, error) {
	return c.graphState.picture(namespace, objects)
}

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

// report calls the handlers for each custom resource that has changed, and once more for those that are still held when that
// is to be reported.
func (c *Chain) report(changes []referent.Change) {
	var late []referent.Key
	for _, change := range changes {
		if change.Held {
			late = append(late, change.Key)
		}
		c.notifyHandlers(change.Key)
	}
	c.reportLate(late)
}

func (c *Chain) reportLate(late []referent.Key) {
	if len(late) == 0 {
		return
	}
	time.AfterFunc(digest.ReportHoldAfter, func() {
		for _, key := range late {
			if c.graphState.isHeld(key) {
				c.notifyHandlers(key)
			}
		}
	})
}

// notifyHandlers calls the handlers for one custom resource.
func (c *Chain) notifyHandlers(key referent.Key) {
	if _, config := key.Ref(); config || key.Group == "" {
		return
	}
	ref := reference.Ref{Kind: reference.CustomKind(key.GroupResource()), Name: key.Name}
	for _, handler := range c.handlers {
		handler(configstate.Event{Namespace: key.Namespace, Ref: ref, Type: configstate.Modified, Received: c.options.Now()})
	}
}
