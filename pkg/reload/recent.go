package reload

import (
	"sync"
	"time"
)

// recent remembers when config objects changed, for as long as they have to settle. It is for workloads that the loop comes
// to know of later than of a change to their configuration, since two watches do not keep step: they too are given the
// time to settle. It is safe for concurrent use.
type recent struct {
	keep time.Duration

	mu     sync.Mutex
	at     map[place]time.Time
	pruned time.Time
}

func newRecent(keep time.Duration) *recent {
	return &recent{keep: keep, at: map[place]time.Time{}}
}

// Note remembers a change, and forgets those before it that have settled.
func (r *recent) Note(p place, at time.Time) {
	if r.keep <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[p] = at
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

// At returns when a config object changed, if it may still have to settle.
func (r *recent) At(p place, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[p]
	return at, ok && now.Sub(at) <= r.keep
}
