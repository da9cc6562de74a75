package tracking

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Kinds are the kinds of workloads to handle; refresh.Kinds are some.
type Kinds interface {
	// Follow calls join for every kind there is and for each that comes, leave for each that goes; never two at once. A
	// kind whose pod template moves goes and comes.
	Follow(join, leave func(workload.Kind))
}

// watched is one kind for as long as it is handled.
type watched struct {
	kind      workload.Kind
	workloads Workloads
	stop      context.CancelFunc
	// stopped is closed when the workloads are not followed any more, ended when the program ends.
	stopped chan struct{}
	ended   <-chan struct{}
	// resolved is the resource of the kind once that is known.
	resolved atomic.Pointer[resolved]
	// reads are those of its workloads while the watch fails.
	reads liveReads

	mu sync.Mutex
	// gone means that no event is wanted any more: one may be on its way.
	gone bool
	// readLive are the workloads that the index has as they were read live. Whatever the watch delivers of them next replaces that.
	readLive map[workload.Key]workload.Summary
	// skipped are the workloads that could not be read live since the last re-check, because too many reads were in flight.
	skipped map[workload.Key]struct{}
}

// resolved is a resource, written as in the rule of a Role, and since when it is known.
type resolved struct {
	resource string
	since    time.Time
}

// resolvedFor is how long a resource is taken for that of its kind: the definition can be deleted and created again with another name.
const resolvedFor = time.Minute

// resource returns the resource of the kind; empty while the cluster does not serve it. It is kept for a while: the RESTMapper takes longer
// than the rest of what finds a workload.
func (w *watched) resource(mapper Mapper, now time.Time) string {
	known := w.resolved.Load()
	if known != nil && now.Sub(known.since) < resolvedFor {
		return known.resource
	}
	mapping, err := mapper.RESTMapping(w.kind.GroupKind(), w.kind.Version)
	switch {
	case err == nil:
		known = &resolved{mapping.Resource.GroupResource().String(), now}
	case known == nil:
		return ""
	default: // the watch is still about what was known
		known = &resolved{known.resource, now}
	}
	w.resolved.Store(known)
	return known.resource
}

// setReadLive records that the index has a workload as it was read live. The caller holds the lock.
func (w *watched) setReadLive(key workload.Key, live workload.Summary) {
	if w.readLive == nil {
		w.readLive = map[workload.Key]workload.Summary{}
	}
	w.readLive[key] = live
}

// takeReadLive returns the version of a workload that was seen last, and whether that was read live; otherwise it is that of the watch. It
// forgets what was read live. The caller holds the lock.
func (w *watched) takeReadLive(s, watched workload.Summary) (seen workload.Summary, was bool) {
	if len(w.readLive) == 0 {
		return watched, false // mostly, and there are many events that do not matter
	}
	key := s.Key()
	live, was := w.readLive[key]
	if !was {
		return watched, false
	}
	delete(w.readLive, key)
	return live, true
}

// lastSeen returns a workload as the index has it: as it was read live, or else as the watch has it.
func (w *watched) lastSeen(key workload.Key) (workload.Summary, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if live, ok := w.readLive[key]; ok {
		return live, live.Kept != nil
	}
	return w.workloads.Get(key.Namespace, key.Name)
}

// setSkipped records whether the live read of a workload was skipped.
func (w *watched) setSkipped(key workload.Key, skipped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !skipped {
		delete(w.skipped, key)
		return
	}
	if w.skipped == nil {
		w.skipped = map[workload.Key]struct{}{}
	}
	w.skipped[key] = struct{}{}
}

// takeSkipped returns the workloads whose live read was skipped since its last call.
func (w *watched) takeSkipped() map[workload.Key]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	skipped := w.skipped
	w.skipped = nil
	return skipped
}

// unlessGone handles an event.
func (w *watched) unlessGone(handle func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		handle()
	}
}

// end stops the watch and waits until it has stopped.
func (w *watched) end() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.stop()
	select {
	case <-w.stopped:
	case <-w.ended:
	}
}

// watches has the kinds that are handled, by ID. It is safe for concurrent use.
type watches struct {
	mu   sync.RWMutex
	byID map[string]*watched
}

func newWatches() *watches { return &watches{byID: map[string]*watched{}} }

func (x *watches) get(id string) *watched {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byID[id]
}

// takeSkipped is watched.takeSkipped for all kinds.
func (x *watches) takeSkipped() map[workload.Key]struct{} {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := map[workload.Key]struct{}{}
	for _, w := range x.byID {
		maps.Copy(all, w.takeSkipped())
	}
	return all
}

func (x *watches) add(w *watched) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byID[w.kind.ID()] = w
}

func (x *watches) remove(id string) *watched {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.byID[id]
	delete(x.byID, id)
	return w
}
