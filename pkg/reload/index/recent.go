package index

import (
	"sync"
	"time"
)

// Recent remembers when config objects changed, for as long as they have to settle. It is for workloads that the loop comes
// to know of later than of a change to their configuration, since two watches do not keep step: they too are given the
// time to settle. It is safe for concurrent use.
type Recent struct {
	keep time.Duration

	mu     sync.Mutex
	at     map[Object]time.Time
	pruned time.Time
}

// NewRecent returns one that keeps a change for some time; 0 keeps none.
func NewRecent(keep time.Duration) *Recent {
	return &Recent{keep: keep, at: map[Object]time.Time{}}
}

// Put records a change, and forgets those before it that have settled.
func (r *Recent) Put(key Object, at time.Time) {
	if r.keep <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[key] = at
	if at.Sub(r.pruned) < r.keep {
		return
	}
	r.pruned = at
	for q, t := range r.at {
		if at.Sub(t) > r.keep {
			delete(r.at, q)
		}
	}
}

// At returns when a config object changed, if it may still have to settle. A custom resource may be in no namespace.
func (r *Recent) At(key Object, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[key]
	if !ok && key.Ref.Kind.Custom() {
		at, ok = r.at[Object{Ref: key.Ref}]
	}
	return at, ok && now.Sub(at) <= r.keep
}
