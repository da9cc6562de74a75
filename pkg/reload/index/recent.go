package index

import (
	"sync"
	"time"
)

// Recent records when config objects changed, and keeps this for the settle time. Two watches are not synchronized: the loop
// may see a workload later than a change of its configuration, and such a workload must also wait for the settle time. Recent is
// safe for concurrent use.
type Recent struct {
	keep time.Duration

	mu     sync.Mutex
	at     map[Object]Change
	pruned time.Time
}

// Change is when a config object changed.
type Change struct {
	At time.Time
	// ResourceVersion is that of the write; empty where it is not known.
	ResourceVersion string
}

// NewRecent returns one that keeps a change for some time; 0 keeps none.
func NewRecent(keep time.Duration) *Recent {
	return &Recent{keep: keep, at: map[Object]Change{}}
}

// Put records a change, and forgets those before it that have settled.
func (r *Recent) Put(key Object, c Change) {
	if r.keep <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[key] = c
	if c.At.Sub(r.pruned) < r.keep {
		return
	}
	r.pruned = c.At
	for q, other := range r.at {
		if c.At.Sub(other.At) > r.keep {
			delete(r.at, q)
		}
	}
}

// Get returns the last change of a config object, if it may still have to settle. A custom resource may be in no namespace.
func (r *Recent) Get(key Object, now time.Time) (Change, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.at[key]
	if !ok && key.Ref.Kind.Custom() {
		c, ok = r.at[Object{Ref: key.Ref}]
	}
	return c, ok && now.Sub(c.At) <= r.keep
}
