package inflight

import (
	"container/list"
	"maps"
	"time"
)

// namespace is what a Limit knows of a namespace that has slots in use, has waiting items, or is slow.
type namespace[K comparable] struct {
	name string
	// slots is how many it may use, inFlight how many it uses, overdue how many of these are overdue.
	slots, inFlight, overdue int
	// slow means that a write was not answered in time, and that it has not regained its share since.
	slow bool
	// late is when that was, inRow how many writes were answered in time since that, or since it has got more slots.
	late  time.Time
	inRow int
	// turn is its place among the namespaces that have waiting items; nil if none waits.
	turn *list.Element
	// waiting are the items that wait, by class, in the order in which they came.
	waiting [classes]list.List
}

// A slow namespace doubles its slots after this many answers in time in a row, and is not slow any more if it has all of them. One
// answer would not do: where each twentieth write hangs, many hang at once as soon as the namespace has all of its slots.
const regained = 16

// slowFor is how long a namespace is slow that has too few writes to regain its share: no late answer came in this time.
const slowFor = 5 * time.Minute

// answered takes in the answer to a write. most is how many slots a namespace may use.
func (n *namespace[K]) answered(inTime bool, most int) {
	if !inTime {
		n.slow, n.slots, n.late, n.inRow = true, 1, time.Now(), 0
		return
	}
	if n.slow {
		if n.inRow++; n.inRow < regained {
			return
		}
		n.inRow = 0
		n.slow = n.slots < most && !n.isLongInTime()
	}
	n.slots = min(2*n.slots, most)
}

// namespace returns the state of a namespace. One that nothing is known of begins with one slot: its writes may hang.
func (l *Limit[K]) namespace(name string) *namespace[K] {
	n, ok := l.namespaces[name]
	if !ok || n.isForgotten() {
		n = &namespace[K]{name: name, slots: 1}
		l.namespaces[name] = n
	}
	return n
}

// isLongInTime reports whether no late answer has come for long.
func (n *namespace[K]) isLongInTime() bool { return time.Since(n.late) >= slowFor }

// isForgotten reports whether nothing counts any more of what is known of a slow namespace.
func (n *namespace[K]) isForgotten() bool {
	return n.slow && n.inFlight == 0 && n.idle() && n.isLongInTime()
}

// forget removes the namespaces that were slow long ago. They may be gone.
func (l *Limit[K]) forget() {
	maps.DeleteFunc(l.namespaces, func(_ string, n *namespace[K]) bool { return n.isForgotten() })
}

// rest forgets what is not needed of a namespace without waiting items: its turn, and, with nothing in flight, the namespace
// itself unless it is slow.
func (l *Limit[K]) rest(n *namespace[K]) {
	if !n.idle() {
		return
	}
	if n.turn != nil {
		l.turns.Remove(n.turn)
		n.turn = nil
	}
	if n.inFlight == 0 && !n.slow {
		delete(l.namespaces, n.name)
	}
}

// idle reports whether no item waits.
func (n *namespace[K]) idle() bool {
	for class := range n.waiting {
		if n.waiting[class].Len() > 0 {
			return false
		}
	}
	return true
}

// next returns the waiting item that is served next, or the one that has waited longest.
func (n *namespace[K]) next(longest bool) *item[K] {
	var best *item[K]
	for class := range n.waiting {
		first := n.waiting[class].Front()
		if first == nil {
			continue
		}
		it := first.Value.(*item[K])
		if best == nil || longest && it.arrival < best.arrival {
			best = it
		}
	}
	return best
}
