package inflight_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

// order collects the items that were given a slot after they had waited.
type order struct {
	mu   sync.Mutex
	keys []string
}

func (o *order) granted(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, key)
}

// got returns the items, also while a timer may give slots.
func (o *order) got() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.keys)
}

// small is a Limit with two slots in total.
func small(o *order) *inflight.Limit[string] {
	return inflight.New(inflight.Options{PerNamespace: 8, Total: 2}, o.granted)
}

// visit enters and leaves an item that must wait.
func visit(t *testing.T, l *inflight.Limit[string], namespace, key string, class inflight.Class) {
	t.Helper()
	require.False(t, l.Enter(namespace, key, class), key)
	l.Leave(key)
}

// use takes the slot that is reserved for an item, and frees it.
func use(t *testing.T, l *inflight.Limit[string], namespace, key string) {
	t.Helper()
	require.True(t, l.Enter(namespace, key, inflight.Urgent), key)
	l.Leave(key)
}

// observeInTime takes in some writes that are answered at once.
func observeInTime(l *inflight.Limit[string], namespace string, n int) {
	for range n {
		l.Observe(namespace, 0)
	}
}

// fill enters items until one must wait, and returns how many have a slot.
func fill(l *inflight.Limit[string], namespace string) int {
	for n := 0; ; n++ {
		if !l.Enter(namespace, fmt.Sprint(namespace, n), inflight.Urgent) {
			return n
		}
	}
}

func TestNamespaceEarnsSlotsByAnswersInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for answers, slots := range map[int]int{0: 1, 1: 2, 2: 4, 3: 8, 4: 8} {
			l := inflight.New(inflight.Options{}, func(string) {})
			require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
			for range answers {
				l.Observe("shop", 2*time.Second-1)
			}
			assert.Equal(t, slots, 1+fill(l, "shop"), "after %d answers", answers)
			assert.Equal(t, 1, fill(l, "bank"), "another namespace has earned nothing")
		}
	})
}

func TestNamespaceLosesItsSlotsByALateAnswerAndRegainsThemGradually(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for answers, slots := range map[int]int{0: 1, 1: 1, 15: 1, 16: 2, 31: 2, 32: 4, 47: 4, 48: 8, 100: 8} {
			l := inflight.New(inflight.Options{}, func(string) {})
			require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
			observeInTime(l, "shop", 3)
			l.Observe("shop", 2*time.Second)
			observeInTime(l, "shop", answers)
			assert.Equal(t, slots, 1+fill(l, "shop"), "after %d answers in time", answers)
			l.Observe("bank", 2*time.Second)
			observeInTime(l, "bank", answers)
			l.Observe("bank", 2*time.Second)
			observeInTime(l, "bank", 15)
			assert.Equal(t, 1, fill(l, "bank"), "%d answers in time, and a late one: it begins again", answers)
		}
	})
}

func TestTotalIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Options{}, func(string) {})
		for i := range 100 {
			l.Enter(fmt.Sprint(i), fmt.Sprint(i), inflight.Urgent)
		}
		assert.Equal(t, 64, l.InFlight())
		assert.Equal(t, 36, l.Waiting())
	})
}

func TestSlowNamespacesShareHalfOfTheTotal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Options{}, func(string) {})
		for i := range 100 {
			l.Observe(fmt.Sprint(i), 10*time.Second)
			l.Enter(fmt.Sprint(i), fmt.Sprint(i), inflight.Urgent)
		}
		assert.Equal(t, 32, l.InFlight())
		assert.True(t, l.Enter("healthy", "healthy", inflight.Retry), "half of the slots are free")
		l.Leave("0")
		assert.Equal(t, 33, l.InFlight(), "the next one of them has its slot")
		observeInTime(l, "1", 63)
		l.Leave("healthy")
		assert.Equal(t, 32, l.InFlight(), "it has all of its slots again, but hangs now and then perhaps")
		require.True(t, l.Enter("healthy", "healthy", inflight.Retry), "half of the slots are free again")
		observeInTime(l, "1", 1)
		l.Leave("healthy")
		assert.Equal(t, 33, l.InFlight(), "one of them has recovered")
	})
}

func TestFirstAttemptsComeBeforeRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "a", inflight.Urgent), "both slots are free")
		require.True(t, l.Enter("b", "b", inflight.Urgent), "one slot is free")
		for i := range 6 {
			visit(t, l, "c", fmt.Sprint("retry-", i), inflight.Retry)
		}
		visit(t, l, "d", "background", inflight.Background)
		for i := range 6 {
			visit(t, l, "e", fmt.Sprint("first-", i), inflight.Urgent)
		}
		l.Leave("a")
		for at := 0; at < len(o.keys); at++ {
			use(t, l, "", o.keys[at])
		}
		assert.Equal(t, []string{
			"first-0", "first-1", "first-2", "retry-0", "first-3", "first-4", "first-5", "retry-1",
			"background", "retry-2", "retry-3", "retry-4", "retry-5",
		}, o.keys, "each fourth slot goes to what has waited longest: nothing starves")
	})
}

func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "a", inflight.Urgent), "both slots are free")
		require.True(t, l.Enter("b", "b", inflight.Urgent), "one slot is free")
		for i := range 100 {
			visit(t, l, "many", fmt.Sprint("many-", i), inflight.Urgent)
		}
		visit(t, l, "few", "few", inflight.Urgent)
		l.Leave("a")
		for at := range 3 {
			use(t, l, "", o.keys[at])
		}
		assert.Contains(t, o.keys[:3], "few")
	})
}

func TestSlotIsReservedUntilTheItemLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "first", inflight.Urgent), "both slots are free")
		require.True(t, l.Enter("a", "first", inflight.Urgent), "it has its slot")
		require.False(t, l.Enter("a", "second", inflight.Urgent), "the namespace has one slot")
		l.Leave("first")
		assert.Equal(t, []string{"second"}, o.keys)
		l.Leave("second")
		assert.Equal(t, 1, l.InFlight(), "the visit ends in which it began to wait: its slot is for the next one")
		require.False(t, l.Enter("a", "third", inflight.Urgent), "the slot is reserved for the second")
		require.True(t, l.Enter("a", "second", inflight.Urgent), "the slot is reserved for it")
		l.Leave("second")
		l.Leave("second")
		assert.Equal(t, []string{"second", "third"}, o.keys)
		assert.Equal(t, 1, l.InFlight())
		assert.Zero(t, l.Waiting())
	})
}

func TestItemThatNeedsNoSlotAnyMoreWaitsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "first", inflight.Urgent), "the namespace has a slot")
		visit(t, l, "a", "second", inflight.Urgent)
		visit(t, l, "a", "third", inflight.Urgent)
		l.Leave("second") // a later visit found nothing to write
		l.Leave("first")
		assert.Equal(t, []string{"third"}, o.keys)
		l.Leave("third") // ends the visit that began to wait
		l.Leave("third")
		assert.Zero(t, l.InFlight())
		assert.Zero(t, l.Waiting())
	})
}

func TestItemKeepsItsPositionUnlessItIsMoreUrgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "first", inflight.Urgent), "the namespace has a slot")
		visit(t, l, "a", "one", inflight.Background)
		visit(t, l, "a", "two", inflight.Background)
		visit(t, l, "a", "one", inflight.Retry)
		visit(t, l, "a", "two", inflight.Urgent)
		l.Leave("first")
		for at := range 2 {
			use(t, l, "a", o.keys[at])
		}
		assert.Equal(t, []string{"two", "one"}, o.keys)
	})
}
