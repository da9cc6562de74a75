package refresh

import (
	"sync"
	"sync/atomic"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Kinds are the kinds of workloads that are handled at the moment. All methods may be called by any goroutine.
type Kinds struct {
	current atomic.Pointer[workload.Kinds]

	mu        sync.Mutex // held while the set changes
	followers []follower
}

type follower struct{ join, leave func(workload.Kind) }

// NewKinds returns the kinds that are handled at first.
func NewKinds(kinds workload.Kinds) *Kinds {
	k := &Kinds{}
	k.current.Store(&kinds)
	return k
}

// Current returns the kinds as of now. It takes no lock, so that every request can ask.
func (k *Kinds) Current() workload.Kinds { return *k.current.Load() }

// Follow calls join for every kind there is, and from then on for each that comes, and leave for each that goes. One whose
// pod template moves goes and comes. What goes leaves while Current still has it, what comes joins when Current has it
// already: so no object is read by a path that it was not kept for. No two calls are made at once, and Set waits for
// them.
func (k *Kinds) Follow(join, leave func(workload.Kind)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.followers = append(k.followers, follower{join, leave})
	for _, kind := range k.Current().All() {
		join(kind)
	}
}

// Set replaces the kinds, and returns those that came and those that went, in a fixed order.
func (k *Kinds) Set(next workload.Kinds) (came, went []workload.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.Current()
	came, went = without(next, before), without(before, next)
	if len(came)+len(went) == 0 {
		return nil, nil
	}
	for _, kind := range went {
		for _, f := range k.followers {
			f.leave(kind)
		}
	}
	k.current.Store(&next)
	for _, kind := range came {
		for _, f := range k.followers {
			f.join(kind)
		}
	}
	return came, went
}

// without returns what is in one set and not, or not the same, in the other.
func without(set, other workload.Kinds) []workload.Kind {
	var rest []workload.Kind
	for _, kind := range set.All() {
		if known, ok := other.Get(kind.GroupVersionKind); !ok || known.String() != kind.String() {
			rest = append(rest, kind)
		}
	}
	return rest
}
