package outbox

import (
	"container/list"
	"time"
)

// namespaceQueue has the items of one namespace that are due. It exists while an item of the namespace is in the outbox, or was slow to be
// written not long ago.
type namespaceQueue struct {
	namespace string
	// first are those that were not tried yet, again those that have failed.
	first, again []*item
	inFlight     int
	// withTopic counts the items of the namespace with a Topic, due or not; withoutTopic has those without one, the oldest first.
	withTopic    int
	withoutTopic list.List
	// slow says that the last request took long, slowAt when it ended.
	slow   bool
	slowAt time.Time
	// queued says that the queue waits for its turn.
	queued bool
	taken  int
	// quietAt is when the quiet period is over if no further message comes. latest is until when the first attempts wait for it.
	quietAt, latest time.Time
	// waiting says that the queue is looked at again at the time look.
	waiting bool
	look    time.Time
}

// isSlow reports whether the last request took long, unless that is long ago.
func (l *namespaceQueue) isSlow(now time.Time) bool { return l.slow && now.Sub(l.slowAt) < slowFor }

// limit is how many attempts may be under way.
func (l *namespaceQueue) limit() int {
	if l.slow {
		return 1
	}
	return underWayInOne
}

// retryEvery is how often a retry goes before a first attempt, so that neither starves the other.
const retryEvery = 4

func (l *namespaceQueue) put(i *item, now time.Time, quietPeriod time.Duration) {
	if i.attempts > 0 {
		l.again = append(l.again, i)
		return
	}
	if len(l.first) == 0 {
		l.latest = now.Add(longestDelay)
	}
	l.first = append(l.first, i)
	l.quietAt = now.Add(quietPeriod)
}

// due is when the first attempts may be made, as far as is known.
func (l *namespaceQueue) due() time.Time {
	if l.latest.Before(l.quietAt) {
		return l.latest
	}
	return l.quietAt
}

// ready reports whether an item may be taken of a queue that is not empty.
func (l *namespaceQueue) ready(now time.Time) bool {
	return len(l.again) > 0 || !now.Before(l.due())
}

// take returns the next item; false if there is none yet.
func (l *namespaceQueue) take(now time.Time) (*item, bool) {
	l.taken++
	from := &l.first
	if len(l.first) == 0 || now.Before(l.due()) || len(l.again) > 0 && l.taken%retryEvery == 0 {
		from = &l.again
	}
	if len(*from) == 0 {
		return nil, false
	}
	i := (*from)[0]
	(*from)[0] = nil
	if *from = (*from)[1:]; len(*from) == 0 {
		*from = nil // a slice keeps the memory of what was taken
	}
	return i, true
}

// add takes in an item of the namespace.
func (l *namespaceQueue) add(i *item) {
	if i.Topic != "" {
		l.withTopic++
		return
	}
	i.place = l.withoutTopic.PushBack(i)
}

// remove takes out an item of the namespace, except where it is due: there it is passed over.
func (l *namespaceQueue) remove(i *item) {
	if i.Topic != "" {
		l.withTopic--
		return
	}
	l.withoutTopic.Remove(i.place)
}

// oldest returns the item without a Topic that has waited longest; nil if each one is under way.
func (l *namespaceQueue) oldest() *item {
	for e := l.withoutTopic.Front(); e != nil; e = e.Next() {
		if i := e.Value.(*item); !i.inFlight {
			return i
		}
	}
	return nil
}

// idle reports whether the namespace has no item in the outbox.
func (l *namespaceQueue) idle() bool { return l.withTopic+l.withoutTopic.Len() == 0 }

func (l *namespaceQueue) empty() bool { return len(l.first)+len(l.again) == 0 }

// delayed is a heap of the queues whose first attempts wait for a quiet period.
type delayed []*namespaceQueue

func (h delayed) Len() int           { return len(h) }
func (h delayed) Less(i, j int) bool { return h[i].look.Before(h[j].look) }
func (h delayed) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *delayed) Push(x any) { *h = append(*h, x.(*namespaceQueue)) }

// Pop is for package heap.
func (h *delayed) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
