package inflight

import "container/list"

// namespace is what a Limit knows of a namespace that has slots in use, has waiting items, or is slow.
type namespace[K comparable] struct {
	name string
	// slots is how many it may use, inFlight how many it uses.
	slots, inFlight int
	// slow means that its last write was not answered in time.
	slow bool
	// turn is its place among the namespaces that have waiting items; nil if none waits.
	turn *list.Element
	// waiting are the items that wait, by class, in the order in which they came.
	waiting [classes]list.List
}

// namespace returns the state of a namespace. One that nothing is known of begins with one slot: its writes may hang.
func (l *Limit[K]) namespace(name string) *namespace[K] {
	n, ok := l.namespaces[name]
	if !ok {
		n = &namespace[K]{name: name, slots: 1}
		l.namespaces[name] = n
	}
	return n
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

// remove takes an item out of those that wait.
func (n *namespace[K]) remove(it *item[K]) {
	n.waiting[it.class].Remove(it.element)
	it.element = nil
}
