package chain

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// record keeps since when nodes are held, and what has led to the state of the others. A question records what it has found some time
// before: a hold that has ended since is not recorded.
func (a *graphState) record(changes []referent.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		return // the configuration has changed meanwhile
	}
	a.prune()
	for _, change := range changes {
		if _, was := a.held[change.Key]; !change.Held {
			delete(a.held, change.Key)
			a.step(change)
		} else if !was && a.graph.Hold(change.Key) != nil {
			a.held[change.Key] = a.now()
		}
	}
}

func (a *graphState) isHeld(key referent.Key) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	_, held := a.held[key]
	return held
}

const (
	// spare is how many objects that are in no graph keep their entries, beside as many as there are in it.
	spare = 1_000
	// keep is how long they keep them at least: an object that comes and goes meanwhile must not prevent the report of a hold. It is
	// also the least time between two prunings.
	keep = time.Minute
)

// prune drops the entries of objects that are in no graph, when most entries are of such objects. They were deleted, or never existed.
func (a *graphState) prune() {
	now := a.now()
	if a.graph == nil || now.Sub(a.prunedAt) < keep {
		return
	}
	most := 2*a.graph.Len() + spare
	if max(len(a.held), len(a.refused), len(a.tracked)) < most {
		return
	}
	a.prunedAt = now
	if len(a.held) >= most {
		maps.DeleteFunc(a.held, func(key referent.Key, since time.Time) bool { return !a.graph.Has(key) && now.Sub(since) >= keep })
	}
	if len(a.refused) >= most {
		maps.DeleteFunc(a.refused, func(key referent.Key, _ time.Time) bool { return key.Name != "" && !a.graph.Has(key) })
	}
	if len(a.tracked) >= most {
		maps.DeleteFunc(a.tracked, func(key referent.Key, _ steps) bool { return !a.graph.Has(key) })
	}
}
