package configstate

import (
	"context"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// giveUpSync is how long a failing watch delays the others.
const giveUpSync = time.Minute

// watchProgress is how far one watch has got.
type watchProgress struct {
	listed, refused bool
	// failing is when it failed first.
	failing time.Time
}

// settled reports whether a watch holds up nothing: it has listed its objects, or may not.
func (p watchProgress) settled() bool { return p.listed || p.refused }

// syncProgress knows which watches have listed their objects, and when all of them have and their initial events have been reported.
type syncProgress struct {
	// watches are fixed before the first of them runs.
	watches watches
	// done is closed once, with mu held.
	done chan struct{}

	// mu guards what follows. Nothing else is locked while it is held.
	mu sync.RWMutex
	// of has the watches that have listed or failed.
	of map[*watcher]watchProgress
	// initials counts the deliveries under way whose events are initial ones.
	initials int
}

func newSyncProgress(ws watches) *syncProgress {
	return &syncProgress{watches: ws, done: make(chan struct{}), of: make(map[*watcher]watchProgress)}
}

// synced is Store.Synced.
func (p *syncProgress) synced() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait is Store.WaitForSync.
func (p *syncProgress) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listed reports whether a watch has listed its objects.
func (p *syncProgress) listed(w *watcher) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.of[w].listed
}

// settled reports whether the watches of some kinds hold up nothing in a namespace. One that is out of scope has no watches.
func (p *syncProgress) settled(namespace string, kinds []reference.Kind) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, kind := range kinds {
		if w := p.watches.of(kind, namespace); w == nil || !p.of[w].settled() {
			return false
		}
	}
	return true
}

// list records that a watch has listed its objects.
func (p *syncProgress) list(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[w] = watchProgress{listed: true}
}

// attempted records that a watch could not list its objects. A watch that fails for long counts as refused, so that it does
// not delay the others: what it has not delivered is read when it is needed.
func (p *syncProgress) attempted(w *watcher, refused bool) {
	p.mu.Lock()
	if of := p.of[w]; !of.listed {
		now := time.Now()
		if of.failing.IsZero() {
			of.failing = now
		}
		of.refused = refused || now.Sub(of.failing) >= giveUpSync
		p.of[w] = of
	}
	p.mu.Unlock()
	p.finish()
}

// begin begins a delivery, which end must end, and reports whether its events are initial ones.
func (p *syncProgress) begin() (initial bool) {
	if p.synced() {
		return false // it remains so
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	initial = !p.syncedLocked()
	if initial {
		p.initials++
	}
	return initial
}

// end ends a delivery: its events have been reported.
func (p *syncProgress) end(initial bool) {
	if !initial {
		return
	}
	p.mu.Lock()
	p.initials--
	p.mu.Unlock()
	p.finish()
}

// finish closes the channel that synced reads, once all initial events have been reported: who looks at everything then passes
// over them, so that nothing would be looked at again for one that comes later.
func (p *syncProgress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.synced() && p.initials == 0 && p.syncedLocked() {
		close(p.done)
	}
}

// syncedLocked reports whether all watches are synced, or about to close the channel.
func (p *syncProgress) syncedLocked() bool {
	if p.synced() {
		return true
	}
	for _, w := range p.watches {
		if !p.of[w].settled() {
			return false
		}
	}
	return true
}
