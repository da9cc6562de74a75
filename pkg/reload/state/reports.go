package state

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reports has which reloads of a workload have an Event.
type reports struct {
	perWorkload[reported]
	emitted emitted
}

// reported is about the reloads that the last-reload annotation of a workload names.
type reported struct {
	// text is a digest of the annotation, seen is when it was first seen; zero if none was.
	text uint64
	seen time.Time
	// open says that it is not decided yet which of these reloads need an Event.
	open bool
}

// emitted has the last Events of each workload that were put into the outbox, by a digest of their names. Forget keeps them: a
// workload can be forgotten although its reload was just reported, as when the watch shows late that a Job was deleted which this
// process has already created again. A second attempt at an Event would find that this process has created it, and count the
// reload again.
type emitted struct {
	mu sync.Mutex
	// since is when recent was begun.
	since           time.Time
	recent, earlier map[workload.Key][]uint64
}

const (
	// mostEmitted is how many Events are kept for a workload: the annotation names six reloads, and an undo may bring
	// an earlier annotation back.
	mostEmitted = 12
	// emittedFor is how long they are kept at least: no older reload gets an Event.
	emittedFor = time.Hour
)

// DigestOf returns a short digest of a text, to keep instead of it.
func DigestOf(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return sum.Sum64()
}

// Observe records the last-reload annotation of a workload. It reports whether that is a new one, and whether one of its reloads may need an
// Event.
func (r *reports) Observe(key workload.Key, text string, now time.Time) (isNew, open bool) {
	if text == "" {
		return false, false
	}
	r.with(key, func(e *reported) {
		if sum := DigestOf(text); e.seen.IsZero() || e.text != sum {
			e.text, e.seen, e.open, isNew = sum, now, true, true
		}
		open = e.open
	})
	return isNew, open
}

// Seen returns when the last-reload annotation was first seen; zero if none was.
func (r *reports) Seen(key workload.Key) time.Time { return r.get(key).seen }

// MarkDecided records that the reloads of the annotation that was seen last are decided.
func (r *reports) MarkDecided(key workload.Key) {
	r.find(key, func(e *reported) { e.open = false })
}

// Report records that the Event of this name is taken care of. It reports whether that is new.
func (r *reports) Report(key workload.Key, name string, now time.Time) bool {
	return r.emitted.add(key, DigestOf(name), now)
}

// add reports false for a name that it has.
func (e *emitted) add(key workload.Key, name uint64, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.age(now)
	names, ok := e.recent[key]
	if !ok {
		names = e.earlier[key]
	}
	if slices.Contains(names, name) {
		return false
	}
	if len(names) == mostEmitted {
		names = names[1:]
	}
	e.recent[key] = append(slices.Clone(names), name)
	return true
}

// age drops the workloads of which nothing was added for emittedFor.
func (e *emitted) age(now time.Time) {
	if e.recent == nil || now.Sub(e.since) >= emittedFor {
		e.since, e.earlier, e.recent = now, e.recent, map[workload.Key][]uint64{}
	}
}
