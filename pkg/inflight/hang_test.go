package inflight_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

// writer writes items: each takes as long as its namespace does. It keeps the largest numbers in flight.
type writer struct {
	limit *inflight.Limit[item]
	took  func(item) time.Duration

	visits     sync.Map // from an item to its *sync.Mutex
	mu         sync.Mutex
	running    sync.WaitGroup
	now, most  int
	in, mostIn map[string]int
	done       map[item]time.Duration
	start      time.Time
}

// longestWrite is when a write is given up. A visit that takes longer hangs in something else, of which the limit learns nothing.
const longestWrite = 10 * time.Second

type item struct {
	namespace string
	n         int
}

func newWriter(took func(item) time.Duration) *writer {
	w := &writer{took: took, in: map[string]int{}, mostIn: map[string]int{}, done: map[item]time.Duration{}, start: time.Now()}
	w.limit = inflight.New(inflight.Options{}, func(it item) { w.running.Go(func() { w.visit(it) }) })
	return w
}

// visit is what the loop does with an item, which it visits once at a time.
func (w *writer) visit(it item) {
	lock, _ := w.visits.LoadOrStore(it, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	defer w.limit.Leave(it)
	if !w.limit.Enter(it.namespace, it, inflight.Urgent) {
		return
	}
	w.count(it, 1)
	took := w.took(it)
	if took > 0 { // many timers of no time at once crash the race detector of Go 1.26 in a synctest bubble
		<-time.After(took)
	}
	if took <= longestWrite {
		w.limit.Observe(it.namespace, took)
	}
	w.count(it, -1)
}

func (w *writer) count(it item, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now += n
	w.in[it.namespace] += n
	w.most, w.mostIn[it.namespace] = max(w.most, w.now), max(w.mostIn[it.namespace], w.in[it.namespace])
	if n < 0 {
		w.done[it] = time.Since(w.start)
	}
}

func (w *writer) finished(it item) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.done[it]
	return at, ok
}

func (w *writer) add(namespace string, n int) {
	for i := range n {
		w.running.Go(func() { w.visit(item{namespace, i}) })
	}
}

// assertBounds checks the largest numbers in flight, and that nothing is left.
func (w *writer) assertBounds(t *testing.T) {
	t.Helper()
	assert.LessOrEqual(t, w.most, 192, "in all namespaces")
	for namespace, most := range w.mostIn {
		assert.LessOrEqual(t, most, 8, namespace)
	}
	assert.Zero(t, w.limit.InFlight())
	assert.Zero(t, w.limit.Waiting())
}

func TestHangingNamespacesDelayOnlyThemselves(t *testing.T) {
	t.Parallel()
	for _, hanging := range []int{1, 8, 60} {
		synctest.Test(t, func(t *testing.T) {
			w := newWriter(hangs)
			for i := range hanging {
				w.add(fmt.Sprint("hanging-", i), 3)
			}
			synctest.Wait()
			w.add("healthy", 100)
			w.running.Wait()
			assert.Len(t, w.done, 3*hanging+100, "nothing is dropped")
			last := time.Duration(0)
			for i := range 100 {
				last = max(last, w.done[item{"healthy", i}])
			}
			assert.Less(t, last, time.Second, "%d namespaces hang", hanging)
		})
	}
}

func TestHangingNamespacesThatAreKnownDelayNoOthers(t *testing.T) {
	t.Parallel()
	for _, hanging := range []int{200, 500} { // the latter are more than all that may be in flight
		synctest.Test(t, func(t *testing.T) {
			w := newWriter(hangs)
			for i := range hanging {
				w.add(fmt.Sprint("hanging-", i), 10)
			}
			<-time.After(75 * time.Second) // each of them has hung once
			begin := time.Since(w.start)
			w.add("healthy", 100)
			<-time.After(time.Second)
			for i := range 100 {
				done, ok := w.finished(item{"healthy", i})
				assert.True(t, ok && done-begin < time.Second, "%d namespaces hang, write %d: %s", hanging, i, done-begin)
			}
			w.running.Wait()
			w.assertBounds(t)
		})
	}
}

// Each write waits for 3 s until our own webhook has not answered, and a reload takes two.
func TestNamespaceWhoseWritesAreSlowAndSucceedIsNotServedOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(func(item) time.Duration { return 6 * time.Second })
		w.add("shop", 300)
		w.running.Wait()
		assert.Less(t, time.Since(w.start), 5*time.Minute)
		w.assertBounds(t)
	})
}

func TestBoundsHoldAndNothingIsDropped(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			slow := map[string]bool{}
			for i := range 30 {
				slow[fmt.Sprint("ns-", i)] = random.IntN(4) == 0
			}
			w := newWriter(func(it item) time.Duration {
				if slow[it.namespace] {
					return 3 * time.Second
				}
				return time.Duration(1+it.n%7) * 10 * time.Millisecond
			})
			total := 0
			for i := range 30 {
				namespace, n := fmt.Sprint("ns-", i), random.IntN(40)
				total += n
				w.add(namespace, n)
				<-time.After(time.Duration(1+random.IntN(100)) * time.Millisecond)
			}
			w.running.Wait()
			assert.Len(t, w.done, total, "seed %d", seed)
			assert.LessOrEqual(t, w.most, 64+32+30, "seed %d: overdue are those of slow namespaces", seed)
			w.assertBounds(t)
		})
	}
}
