package reload

import (
	"hash/fnv"
	"slices"
	"time"
)

// reported is what the loop remembers of the reloads that the last-reload annotation of a workload names.
type reported struct {
	// text is a digest of the annotation, seen is when it was first seen; zero if none was.
	text uint64
	seen time.Time
	// open says that it is not decided yet which of these reloads need an Event.
	open bool
	// names are the last Events that were put into the outbox, or that exist, by a digest of their names.
	names []uint64
}

// mostReported is how many Events are remembered for a workload: the annotation names six reloads, and an undo may bring
// an earlier annotation back.
const mostReported = 12

func digestOf(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return sum.Sum64()
}

// See notes the last-reload annotation of a workload. It reports whether one of its reloads may need an Event.
func (m *memory) See(key Key, text string, now time.Time) bool {
	if text == "" {
		return false
	}
	open := false
	m.with(key, func(n *note) {
		r := &n.reloads
		if sum := digestOf(text); r.seen.IsZero() || r.text != sum {
			r.text, r.seen, r.open = sum, now, true
		}
		open = r.open
	})
	return open
}

// Seen returns when the last-reload annotation was first seen; zero if none was.
func (m *memory) Seen(key Key) time.Time {
	var seen time.Time
	m.recall(key, func(n *note) { seen = n.reloads.seen })
	return seen
}

// Close notes that the reloads of the annotation that was seen last are decided.
func (m *memory) Close(key Key) {
	m.recall(key, func(n *note) { n.reloads.open = false })
}

// Report notes that the Event of this name is taken care of. It reports whether that is new.
func (m *memory) Report(key Key, name string) bool {
	isNew := false
	m.with(key, func(n *note) {
		r, sum := &n.reloads, digestOf(name)
		if isNew = !slices.Contains(r.names, sum); !isNew {
			return
		}
		if len(r.names) == mostReported {
			r.names = r.names[:copy(r.names, r.names[1:])]
		}
		r.names = append(r.names, sum)
	})
	return isNew
}
