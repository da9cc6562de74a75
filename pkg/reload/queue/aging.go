package queue

import (
	"container/list"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// aging finds workloads that wait in the queue with a low priority for too long. The queue serves higher priorities first
// however long the others wait, so that constant changes of configuration could put off adoptions, Events and retries for
// ever. It is safe for concurrent use.
type aging struct {
	mu     sync.Mutex
	queued map[workload.Key]*list.Element
	// order has the queued workloads as aged.
	order *list.List
}

// aged is a workload that waits in the queue since a time, which may be in the future.
type aged struct {
	key   workload.Key
	since time.Time
}

const (
	// agesAfter is how long a workload waits before its priority is raised.
	agesAfter = 5 * time.Second
	// raisedAtOnce is how many are raised each second: urgent workloads must not wait behind all others, as at the start of
	// the process.
	raisedAtOnce = 100
)

func newAging() *aging { return &aging{queued: map[workload.Key]*list.Element{}, order: list.New()} }

// Queued records that workloads wait with a low priority, unless they do already.
func (a *aging) Queued(since time.Time, keys ...workload.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		if _, ok := a.queued[key]; !ok {
			a.queued[key] = a.order.PushBack(aged{key, since})
		}
	}
}

// Taken records that a workload is taken from the queue.
func (a *aging) Taken(key workload.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(key)
}

func (a *aging) remove(key workload.Key) {
	element, ok := a.queued[key]
	if !ok {
		return
	}
	a.order.Remove(element)
	delete(a.queued, key)
	if len(a.queued) == 0 {
		a.queued = map[workload.Key]*list.Element{} // a map keeps the memory of what is deleted
	}
}

// Raise returns workloads that have waited for too long, and forgets them.
func (a *aging) Raise(now time.Time) []workload.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []workload.Key
	for element := a.order.Front(); element != nil && len(keys) < raisedAtOnce; element = element.Next() {
		if waits := element.Value.(aged); now.Sub(waits.since) >= agesAfter {
			keys = append(keys, waits.key)
		}
	}
	for _, key := range keys {
		a.remove(key)
	}
	return keys
}
