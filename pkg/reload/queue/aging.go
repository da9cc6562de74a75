package queue

import (
	"container/heap"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// aging finds workloads that wait in the queue with a low priority for too long. The queue serves higher priorities first
// however long the others wait, so that constant changes of configuration could put off adoptions, Events and retries for
// ever. It is safe for concurrent use.
type aging struct {
	mu     sync.Mutex
	queued map[workload.Key]*aged
	order  byAge
}

// aged is a workload that waits in the queue since a time, which may be in the future.
type aged struct {
	key   workload.Key
	since time.Time
	// at is its place in the heap.
	at int
}

// byAge is a heap of workloads: the one that waits for the longest time is the first.
type byAge []*aged

func (b byAge) Len() int           { return len(b) }
func (b byAge) Less(i, j int) bool { return b[i].since.Before(b[j].since) }

func (b byAge) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].at, b[j].at = i, j
}

// Push is that of a heap.
func (b *byAge) Push(x any) {
	waits := x.(*aged)
	waits.at = len(*b)
	*b = append(*b, waits)
}

// Pop is that of a heap.
func (b *byAge) Pop() any {
	last := len(*b) - 1
	waits := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return waits
}

const (
	// agesAfter is how long a workload waits before its priority is raised.
	agesAfter = 5 * time.Second
	// raisedAtOnce is how many are raised each second: urgent workloads must not wait behind all others, as at the start of
	// the process.
	raisedAtOnce = 100
)

func newAging() *aging { return &aging{queued: map[workload.Key]*aged{}} }

// add records that workloads wait with a low priority since a time, unless they do since an earlier one.
func (a *aging) add(since time.Time, keys ...workload.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		waits, ok := a.queued[key]
		switch {
		case !ok:
			waits = &aged{key: key, since: since}
			a.queued[key] = waits
			heap.Push(&a.order, waits)
		case since.Before(waits.since):
			waits.since = since
			heap.Fix(&a.order, waits.at)
		}
	}
}

// taken records that a workload is taken from the queue.
func (a *aging) taken(key workload.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waits, ok := a.queued[key]; ok {
		a.remove(waits)
	}
}

func (a *aging) remove(waits *aged) {
	heap.Remove(&a.order, waits.at)
	delete(a.queued, waits.key)
	if len(a.queued) == 0 { // a map and a slice keep the memory of what is deleted
		a.queued, a.order = map[workload.Key]*aged{}, nil
	}
}

// raise returns the workloads that have waited for too long, those that wait for the longest time first, and forgets them.
func (a *aging) raise(now time.Time) []workload.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []workload.Key
	for len(keys) < raisedAtOnce && len(a.order) > 0 && now.Sub(a.order[0].since) >= agesAfter {
		waits := a.order[0]
		a.remove(waits)
		keys = append(keys, waits.key)
	}
	return keys
}
