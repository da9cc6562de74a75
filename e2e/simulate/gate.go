package simulate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// waiter is one request that waits at the gate.
type waiter struct {
	call *world.Call
	// name is equal for equal requests of different runs of the same history.
	name string
	// until is when the request may go on; zero until the scheduler has seen it.
	until time.Time
	seen  bool
	// late means that the request is served even if its client has gone, as a write that was already on its way.
	late bool
	pass chan apiserver.Fate
}

// gate is where requests wait for the scheduler. Handlers of the API server call Wait; only the scheduler calls the rest.
type gate struct {
	// arrived has a signal when a request has come that the scheduler may not have seen.
	arrived chan struct{}

	mu      sync.Mutex
	waiting []*waiter
	closed  bool
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

// Wait blocks until the scheduler lets the request pass, or its client goes away.
func (g *gate) Wait(ctx context.Context, call *world.Call) apiserver.Fate {
	w := &waiter{call: call, name: nameOf(call), pass: make(chan apiserver.Fate, 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return apiserver.Fate{Drop: true}
	}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	g.wake()
	select {
	case fate := <-w.pass:
		return fate
	case <-ctx.Done():
	}
	g.mu.Lock()
	late := w.late
	if !late {
		g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter) bool { return other == w })
	}
	g.mu.Unlock()
	if late {
		fate := <-w.pass
		fate.Late = true
		return fate
	}
	return apiserver.Fate{Drop: true}
}

// wake wakes the scheduler.
func (g *gate) wake() {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// Waiting returns the requests that wait, in an order that does not depend on which came first within one moment.
func (g *gate) Waiting() []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.waiting, func(a, b *waiter) int {
		return cmp.Or(a.call.Arrived.Compare(b.call.Arrived), cmp.Compare(a.name, b.name), cmp.Compare(a.call.Number, b.call.Number))
	})
	return slices.Clone(g.waiting)
}

// Pass lets a request go on.
func (g *gate) Pass(w *waiter, fate apiserver.Fate) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter) bool { return other == w })
	g.mu.Unlock()
	w.pass <- fate
}

// MakeLate has a request served whether or not its client waits for the answer.
func (g *gate) MakeLate(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.late = true
}

// Close drops all requests that wait, and those that come.
func (g *gate) Close() {
	g.mu.Lock()
	g.closed = true
	waiting := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	for _, w := range waiting {
		w.pass <- apiserver.Fate{Drop: true}
	}
}

// underLock reports whether client-go or controller-runtime sends a request while it holds a lock: discovery, and the
// refreshing of Event series. Goroutines that wait for the lock are not idle, so that the scheduler's turn would never come:
// these requests do not wait for it.
func underLock(call *world.Call) bool {
	return call.Key.Resource.Plural == "" || call.Key.Resource.Plural == world.Events.Plural && call.Verb == "patch"
}

// nameOf names a request by what is asked for. Parts of the path that are random in client-go, such as time-outs of watches,
// are left out.
func nameOf(call *world.Call) string {
	name := call.Client + " " + call.Verb + " "
	if call.Key.Resource.Plural == "" {
		return name + call.Path
	}
	name += call.Key.String()
	if call.Subresource != "" {
		name += "/" + call.Subresource
	}
	if call.DryRun {
		name += " dry-run"
	}
	return name
}

// tracename distinguishes equal requests that wait at the same time.
func tracename(name string, nth int) string {
	if nth == 0 {
		return name
	}
	return name + "#" + strconv.Itoa(nth)
}
