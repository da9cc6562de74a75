package inflight_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// neighbor is a namespace whose writes take 10 ms. They come one by one, whatever becomes of the others.
type neighbor struct {
	w *writer
	n int
}

// write adds a write each interval for some time, and returns the mean and the longest time until one of these was done.
func (n *neighbor) write(interval, period time.Duration) (mean, longest time.Duration) {
	begun := map[item]time.Duration{}
	for range period / interval {
		it := item{"healthy", n.n}
		n.n++
		begun[it] = time.Since(n.w.start)
		n.w.running.Go(func() { n.w.visit(it) })
		<-time.After(interval)
	}
	<-time.After(time.Minute)
	for it, begin := range begun {
		done, ok := n.w.finished(it)
		if !ok {
			return time.Hour, time.Hour
		}
		mean, longest = mean+done-begin, max(longest, done-begin)
	}
	return mean / time.Duration(len(begun)), longest
}

// hangs is what a write takes in a namespace that hangs.
func hangs(it item) time.Duration {
	if it.namespace == "healthy" {
		return 10 * time.Millisecond
	}
	return 10 * time.Second
}

func TestNamespacesThatHangNowAndThenHardlyDelayOthers(t *testing.T) {
	t.Parallel()
	for _, flapping := range []int{8, 12, 24, 40} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%d namespaces, seed %d", flapping, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { assertFlappingDelaysNoOthers(t, flapping, seed) })
			})
		}
	}
}

// assertFlappingDelaysNoOthers lets each twentieth write of some namespaces hang.
func assertFlappingDelaysNoOthers(t *testing.T, flapping int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(flapping)))
	var mu sync.Mutex
	w := newWriter(func(it item) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if it.namespace != "healthy" && random.IntN(20) > 0 {
			return 0
		}
		return hangs(it)
	})
	for i := range flapping {
		w.add(fmt.Sprint("flapping-", i), 200)
	}
	synctest.Wait()
	mean, longest := (&neighbor{w: w}).write(100*time.Millisecond, 2*time.Minute)
	assert.Less(t, longest, 1500*time.Millisecond, "longest")
	assert.Less(t, mean, 100*time.Millisecond, "mean")
	w.running.Wait()
	assert.Len(t, w.done, 200*flapping+1200, "nothing is dropped")
	w.assertBounds(t)
}

func TestManyNamespacesThatBeginToHangDelayOthersByASecond(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"many writes": 20 * time.Millisecond, "few writes": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWriter(hangs)
				for i := range 150 {
					w.add(fmt.Sprint("hanging-", i), 4)
				}
				synctest.Wait()
				mean, longest := (&neighbor{w: w}).write(interval, 2*time.Minute)
				assert.Less(t, longest, 1500*time.Millisecond, "longest")
				assert.Less(t, mean, 100*time.Millisecond, "mean")
				w.running.Wait()
				w.assertBounds(t)
			})
		})
	}
}

func TestSlotsThatAreHeldWithoutAWriteDelayOthersByASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(func(it item) time.Duration {
			if it.namespace == "healthy" {
				return hangs(it)
			}
			return time.Minute
		})
		for i := range 100 {
			w.add(fmt.Sprint("unread-", i), 3)
		}
		synctest.Wait()
		mean, longest := (&neighbor{w: w}).write(100*time.Millisecond, 2*time.Minute)
		assert.Less(t, longest, 1500*time.Millisecond, "longest")
		assert.Less(t, mean, 100*time.Millisecond, "mean")
		w.running.Wait()
		w.assertBounds(t)
	})
}
