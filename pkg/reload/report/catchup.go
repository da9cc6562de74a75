package report

import (
	"context"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// catchUp has which reloads of the time before this process leads have an Event, and which workloads wait for that. It is
// safe for concurrent use.
type catchUp struct {
	mu     sync.Mutex
	listed bool
	// names are digests of the namespaces and names of the Events that exist.
	names map[uint64]bool
	// waiting are the workloads that have reloads from before, in order.
	waiting []workload.Key
	waits   map[workload.Key]bool
}

// exists reports whether there is an Event, and whether that is known yet.
func (c *catchUp) exists(namespace, name string) (exists, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[state.DigestOf(namespace+"/"+name)], c.listed
}

// await has a workload looked at again when the Events are listed. It returns false if they are.
func (c *catchUp) await(key workload.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed {
		return false
	}
	if !c.waits[key] {
		if c.waits == nil {
			c.waits = map[workload.Key]bool{}
		}
		c.waits[key] = true
		c.waiting = append(c.waiting, key)
	}
	return true
}

// finish ends the wait.
func (c *catchUp) finish(names map[uint64]bool) []workload.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.listed, c.names, c.waiting, c.waits = true, names, nil, nil
	return waiting
}

// forget frees what nothing asks for any more: all reloads from before are too old.
func (c *catchUp) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = nil
}

// CatchUp lists the Events of earlier leaders once, and then calls listed with the workloads that have waited for it. Where the list
// fails each Event is written: that one exists is then known by the API server's refusal. It returns when the context ends.
func (r *Reporter) CatchUp(ctx context.Context, api EventLister, namespaces []string, listed func(...workload.Key)) error {
	names, err := eventList{api, namespaces}.reloads(ctx)
	if err != nil && ctx.Err() == nil {
		r.with.Log.Info("cannot list Events; writing those of the last 50 minutes again, without duplicates",
			"error", err.Error())
	}
	listed(r.catchUp.finish(names)...)
	select {
	case <-ctx.Done():
	case <-time.After(reportedFor):
		r.catchUp.forget()
		<-ctx.Done()
	}
	return nil
}
