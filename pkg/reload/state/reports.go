package state

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reports has which reloads of a workload have an Event.
type reports struct{ perWorkload[reported] }

// reported is about the reloads that the last-reload annotation of a workload names.
type reported struct {
	// text is a digest of the annotation, seen is when it was first seen; zero if none was.
	text uint64
	seen time.Time
	// open says that it is not decided yet which of these reloads need an Event.
	open bool
	// names are the last Events that were put into the outbox, or that exist, by a digest of their names.
	names []uint64
}

// mostReported is how many Events are kept for a workload: the annotation names six reloads, and an undo may bring
// an earlier annotation back.
const mostReported = 12

// DigestOf returns a short digest of a text, to keep instead of it.
func DigestOf(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return sum.Sum64()
}

// See records the last-reload annotation of a workload. It reports whether one of its reloads may need an Event.
func (r *reports) See(key workload.Key, text string, now time.Time) bool {
	if text == "" {
		return false
	}
	open := false
	r.with(key, func(e *reported) {
		if sum := DigestOf(text); e.seen.IsZero() || e.text != sum {
			e.text, e.seen, e.open = sum, now, true
		}
		open = e.open
	})
	return open
}

// Seen returns when the last-reload annotation was first seen; zero if none was.
func (r *reports) Seen(key workload.Key) time.Time {
	var seen time.Time
	r.find(key, func(e *reported) { seen = e.seen })
	return seen
}

// Close records that the reloads of the annotation that was seen last are decided.
func (r *reports) Close(key workload.Key) {
	r.find(key, func(e *reported) { e.open = false })
}

// Report records that the Event of this name is taken care of. It reports whether that is new.
func (r *reports) Report(key workload.Key, name string) bool {
	isNew := false
	r.with(key, func(e *reported) {
		sum := DigestOf(name)
		if isNew = !slices.Contains(e.names, sum); !isNew {
			return
		}
		if len(e.names) == mostReported {
			e.names = e.names[:copy(e.names, e.names[1:])]
		}
		e.names = append(e.names, sum)
	})
	return isNew
}
