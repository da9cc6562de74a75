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
	state, key, unseen := c.state(namespace, ref)
	if unseen {
		c.record([]referent.Change{{Key: key, Held: true}})
		c.reportLate([]referent.Key{key})
	}
	return state
}

// Referred returns the config objects, by namespace, to which custom resources refer; those that may not be watched are left out. What
// happens to them is no concern of an index of workloads: what stands in for a watch that fails has to know them.
func (c *Chain) Referred() map[string][]reference.Ref {
	referred := map[string][]reference.Ref{}
	for _, key := range c.configObjects() {
		if ref, ok := key.Ref(); ok && !namespaces(c.options.Namespaces).outside(key.Namespace) {
			referred[key.Namespace] = append(referred[key.Namespace], ref)
		}
	}
	return referred
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
			if c.isHeld(key) {
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
