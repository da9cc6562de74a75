// Package inflight bounds the writes that are in flight, for each namespace and in total, so that a namespace whose writes
// hang holds up itself only. An item that finds no slot waits outside of the workers: the limit calls back when a slot is
// reserved for it.
//
// Which writes hang is known late, and many may begin to hang at once. So a slot that is not given back soon is overdue, whatever its
// holder does with it: it counts against a bound of its own. Its namespace gets another one only if all of its slots are overdue, and few
// slots are overdue in total.
//
// The loop in pkg/reload asks for a slot before it writes a workload. The package knows nothing of workloads and does no I/O.
package inflight

import (
	"container/list"
	"sync"
	"time"
)

// Class is the rank of an item among those that wait for a slot. A lower class still gets a share of the slots.
type Class int

// The classes, the most urgent first.
const (
	// Urgent is a first attempt at what must be prompt.
	Urgent Class = iota
	// Background is a first attempt at what can wait.
	Background
	// Retry is an attempt after a failure.
	Retry
	classes
)

// The defaults of Options.Total and Options.Overdue.
const (
	DefaultTotal   = 64
	DefaultOverdue = 128
)

// Options are the bounds of a Limit. The zero value has the defaults.
type Options struct {
	// PerNamespace is the bound for a namespace whose writes are answered in time; 0 means 8. A namespace begins with one
	// slot, and each answer in time doubles what it has: many namespaces that begin to hang at once take one slot each.
	PerNamespace int
	// Total is the bound for all namespaces; 0 means DefaultTotal. Slots that are overdue do not count.
	Total int
	// Overdue is the bound for slots that are overdue; 0 means DefaultOverdue. Those beyond it count against Total, and Slow. Together with
	// Total it stays below the 245 requests that the API server handles at the same time of all service accounts outside of kube-system,
	// by the defaults of its priority level workload-low: writes that hang would take them from others.
	Overdue int
	// Spare is how many slots may be overdue while a namespace whose slots are all overdue gets one more; 0 means a quarter of Overdue. Such
	// slots cost other namespaces little, and the writes of a namespace may be slow and succeed: while our own webhook does not answer, each
	// write waits for it.
	Spare int
	// Slow is the bound for all namespaces together whose writes are not answered in time; 0 means half of Total. Each of
	// them begins again with one slot. Slots that are overdue do not count.
	Slow int
	// Soon is when a slot is overdue; 0 means 400 ms.
	Soon time.Duration
	// InTime is how soon a write must be answered; 0 means 2 s.
	InTime time.Duration
}

func (o Options) withDefaults() Options {
	if o.PerNamespace <= 0 {
		o.PerNamespace = 8
	}
	if o.Total <= 0 {
		o.Total = DefaultTotal
	}
	if o.Overdue <= 0 {
		o.Overdue = DefaultOverdue
	}
	if o.Spare <= 0 {
		o.Spare = max(o.Overdue/4, 1)
	}
	if o.Slow <= 0 {
		o.Slow = max(o.Total/2, 1)
	}
	if o.Soon <= 0 {
		o.Soon = 400 * time.Millisecond
	}
	if o.InTime <= 0 {
		o.InTime = 2 * time.Second
	}
	return o
}

// Limit gives slots to items. It is safe for concurrent use. A nil one gives a slot to each item.
type Limit[K comparable] struct {
	options Options
	granted func(K)

	mu         sync.Mutex
	namespaces map[string]*namespace[K]
	items      map[K]*item[K]
	// turns are the namespaces with waiting items, in the order in which they are served; waiting counts the items, by class.
	turns   *list.List
	waiting [classes]int
	// inFlight counts the slots in use, and overdue those of them that are overdue.
	inFlight, overdue int
	// slow counts the slots of slow namespaces that are not overdue.
	slow int
	// recent are the items whose slots are not overdue, in the order in which they got these.
	recent *list.List
	// armed means that a timer runs until the first of recent is overdue, or less long.
	armed bool
	// grants and arrivals count the slots given to waiting items, and the items that began to wait.
	grants, arrivals uint64
}

// New makes a Limit. It calls granted, without a lock, when an item that waited has a slot: the item must then come back with
// Enter and Leave.
func New[K comparable](options Options, granted func(K)) *Limit[K] {
	return &Limit[K]{
		options: options.withDefaults(), granted: granted,
		namespaces: map[string]*namespace[K]{}, items: map[K]*item[K]{}, turns: list.New(), recent: list.New(),
	}
}

// item is an item that has a slot or waits for one.
type item[K comparable] struct {
	key     K
	of      *namespace[K]
	class   Class
	arrival uint64
	// element is the item's in the list of those that wait; nil if it holds a slot.
	element *list.Element
	holds   bool
	// since is when it got its slot, recent its element among those whose slots are not overdue; nil if it is overdue.
	since  time.Time
	recent *list.Element
	// parked means that the visit in which the item began to wait has not ended.
	parked bool
}

// Enter begins the writes of an item and reports whether it has a slot. If not, the item waits, and granted is called later.
// An item that has a slot keeps it, and one that waits keeps its place unless its class has become more urgent.
func (l *Limit[K]) Enter(name string, key K, class Class) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	it, known := l.items[key]
	if !known {
		it = &item[K]{key: key, of: l.namespace(name)}
		l.items[key] = it
	}
	switch {
	case it.holds:
	case !known && it.of.idle() && l.hasCapacity(it.of):
		l.take(it)
	case !known:
		l.arrivals++
		it.arrival = l.arrivals
		l.wait(it, class)
	case class < it.class:
		l.remove(it)
		l.wait(it, class)
	}
	it.parked = !it.holds
	l.await()
	return it.holds
}

// Leave ends a visit of an item: the slot is free for others, unless the item has only begun to wait in this visit. An item
// that waits since an earlier visit waits no more: there is nothing to write any more.
func (l *Limit[K]) Leave(key K) {
	if l == nil {
		return
	}
	for _, next := range l.leave(key) {
		l.granted(next)
	}
}

func (l *Limit[K]) leave(key K) []K {
	l.mu.Lock()
	defer l.mu.Unlock()
	it, ok := l.items[key]
	switch {
	case !ok:
		return nil
	case it.parked:
		it.parked = false
		return nil
	}
	delete(l.items, key)
	if it.holds {
		l.release(it)
	} else {
		l.remove(it)
		l.rest(it.of)
	}
	return l.grant()
}

// Observe takes in how long a write in a namespace took, whatever the answer. A namespace is slow from a late answer on: it has one slot,
// and shares a part of the total with others of its kind, until enough writes in a row are answered in time or none was late for long.
func (l *Limit[K]) Observe(name string, took time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.namespace(name)
	slow := n.slow
	n.answered(took < l.options.InTime, l.options.PerNamespace)
	if n.slow && !slow {
		l.slow += n.inFlight - n.overdue
		l.forget()
	} else if slow && !n.slow {
		l.slow -= n.inFlight - n.overdue
	}
	l.rest(n)
}

// InFlight returns the number of slots in use.
func (l *Limit[K]) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight
}

// Waiting returns the number of items that wait for a slot.
func (l *Limit[K]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.items) - l.inFlight
}

// grant gives free slots to waiting items and returns these.
func (l *Limit[K]) grant() []K {
	l.expire()
	defer l.await()
	var keys []K
	for {
		it := l.choose()
		if it == nil {
			return keys
		}
		l.grants++
		l.remove(it)
		l.take(it)
		l.turns.MoveToBack(it.of.turn)
		l.rest(it.of)
		keys = append(keys, it.key)
	}
}

// share is how often a slot goes to the item that has waited longest, whatever its class.
const share = 4

// choose returns the waiting item that is next, if there is a slot for it: one of the most urgent class, namespaces taking
// turns, and each fourth time the one that has waited longest. There may be thousands of namespaces: the first item of the most urgent class
// ends the search.
func (l *Limit[K]) choose() *item[K] {
	if l.isFull() {
		return nil
	}
	longest, urgent := l.grants%share == share-1, l.mostUrgent()
	var best *item[K]
	for turn := l.turns.Front(); turn != nil; turn = turn.Next() {
		n := turn.Value.(*namespace[K])
		if !l.hasCapacity(n) {
			continue
		}
		it := n.next(longest)
		switch {
		case best == nil, longest && it.arrival < best.arrival, !longest && it.class < best.class:
			best = it
		}
		if !longest && best.class == urgent {
			break
		}
	}
	return best
}

// mostUrgent returns the most urgent class of which an item waits.
func (l *Limit[K]) mostUrgent() Class {
	for class, n := range l.waiting {
		if n > 0 {
			return Class(class)
		}
	}
	return classes
}

func (l *Limit[K]) wait(it *item[K], class Class) {
	if it.of.turn == nil {
		it.of.turn = l.turns.PushBack(it.of)
	}
	it.class = class
	it.element = it.of.waiting[class].PushBack(it)
	l.waiting[class]++
}

// remove takes an item out of those that wait.
func (l *Limit[K]) remove(it *item[K]) {
	it.of.waiting[it.class].Remove(it.element)
	it.element = nil
	l.waiting[it.class]--
}
