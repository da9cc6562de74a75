package inflight

import "time"

// hasCapacity reports whether there is a slot for a namespace.
func (l *Limit[K]) hasCapacity(n *namespace[K]) bool {
	if l.isFull() || n.inFlight >= l.options.mayUse(n.slots, n.overdue, l.overdue) {
		return false
	}
	return !n.slow || l.slow+l.beyond() < l.options.Slow
}

// mayUse returns how many slots a namespace may use that has earned some and of which some are overdue: one more than these while few slots
// are overdue in all namespaces. Its writes may hang, so it tries one at a time.
func (o Options) mayUse(earned, overdue, overdueInAll int) int {
	switch {
	case overdue == 0:
		return earned
	case overdueInAll >= o.Spare:
		return overdue
	default:
		return min(overdue+1, o.PerNamespace)
	}
}

// isFull reports whether there is no slot for any namespace.
func (l *Limit[K]) isFull() bool { return l.inFlight-l.overdue+l.beyond() >= l.options.Total }

// beyond returns how many slots are overdue beyond the bound for such.
func (l *Limit[K]) beyond() int { return max(l.overdue-l.options.Overdue, 0) }

// take gives a slot to an item; there is one.
func (l *Limit[K]) take(it *item[K]) {
	it.holds, it.since, it.recent = true, time.Now(), l.recent.PushBack(it)
	it.of.inFlight++
	l.inFlight++
	if it.of.slow {
		l.slow++
	}
}

// release takes back the slot of an item.
func (l *Limit[K]) release(it *item[K]) {
	if it.recent != nil {
		l.drop(it)
	} else {
		it.of.overdue--
		l.overdue--
	}
	it.of.inFlight--
	l.inFlight--
	l.rest(it.of)
}

// drop takes an item out of those whose slots are not overdue.
func (l *Limit[K]) drop(it *item[K]) {
	l.recent.Remove(it.recent)
	it.recent = nil
	if it.of.slow {
		l.slow--
	}
}

// expire finds the slots that have become overdue. Their namespace begins again with one slot: what hangs may end without an answer.
func (l *Limit[K]) expire() {
	for first := l.recent.Front(); first != nil; first = l.recent.Front() {
		it := first.Value.(*item[K])
		if time.Since(it.since) < l.options.Soon {
			return
		}
		l.drop(it)
		it.of.slots = 1
		it.of.overdue++
		l.overdue++
	}
}

// await gives slots to waiting items when the next slot is overdue. Without waiting items there is nothing to wait for.
func (l *Limit[K]) await() {
	first := l.recent.Front()
	if l.armed || first == nil || l.turns.Len() == 0 {
		return
	}
	l.armed = true
	time.AfterFunc(time.Until(first.Value.(*item[K]).since.Add(l.options.Soon)), func() {
		for _, key := range l.afterExpiry() {
			l.granted(key)
		}
	})
}

func (l *Limit[K]) afterExpiry() []K {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	return l.grant()
}
