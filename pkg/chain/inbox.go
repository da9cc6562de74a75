package chain

import (
	"context"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// inbox gathers what concerns the graph for the evaluator, which owns that. Any goroutine gathers; take, takeConfig and wait are for
// the evaluator.
type inbox struct {
	// debounce is how long changes gather before they are evaluated.
	debounce time.Duration
	wake     chan struct{} // holds one token: something is pending
	came     chan struct{} // holds one token: what the evaluator has begun has ended
	// undebounced takes questions that do not wait for the debounce; each is closed when all is applied that was pending.
	undebounced chan chan struct{}

	mu sync.Mutex
	// pending waits for the debounce. arrived does not: it is the answer to a read or a write that a debounced change has begun.
	pending, arrived pending
}

func newInbox(debounce time.Duration) *inbox {
	return &inbox{
		debounce: debounce, wake: make(chan struct{}, 1), came: make(chan struct{}, 1), undebounced: make(chan chan struct{}),
	}
}

// gather adds to what is pending, and wakes the evaluator.
func (i *inbox) gather(add func(*pending)) {
	i.mu.Lock()
	add(&i.pending)
	i.mu.Unlock()
	signal(i.wake)
}

// gatherAfter is gather after a while.
func (i *inbox) gatherAfter(wait time.Duration, add func(*pending)) {
	time.AfterFunc(wait, func() { i.gather(add) })
}

// retry gathers what was refused and is to be asked for again.
func (i *inbox) retry(refused []referent.Key) {
	if len(refused) > 0 {
		i.gather(func(p *pending) { p.refused = append(p.refused, refused...) })
	}
}

// arrive is gather for the end of what the evaluator has begun.
func (i *inbox) arrive(add func(*pending)) {
	i.mu.Lock()
	add(&i.arrived)
	i.mu.Unlock()
	signal(i.came)
}

// wakeUp has the evaluator look again after the debounce.
func (i *inbox) wakeUp() { signal(i.wake) }

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// wait waits for something, or for a question; for a debounce at most.
func (i *inbox) wait(ctx context.Context, done <-chan struct{}) (asked chan struct{}) {
	timer := time.NewTimer(i.debounce)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case asked = <-i.undebounced:
	case <-done:
	case <-timer.C:
	}
	return asked
}

// take returns what has arrived, and what has gathered, if that has waited.
func (i *inbox) take(gathered bool) pending {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.came:
	default:
	}
	p := i.arrived
	i.arrived = pending{}
	if gathered {
		p = p.and(i.pending)
		i.pending = pending{}
	}
	return p
}

// takeConfig returns the config objects that have gathered, and leaves the rest.
func (i *inbox) takeConfig() map[configKey]struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	config := i.pending.config
	i.pending.config = nil
	return config
}

// applyPendingLimit is how long a question waits for what is pending.
const applyPendingLimit = 500 * time.Millisecond

// applyPending asks the evaluator to apply what is pending without the debounce, and waits for that.
func (i *inbox) applyPending(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, applyPendingLimit)
	defer cancel()
	done := make(chan struct{})
	select {
	case i.undebounced <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
