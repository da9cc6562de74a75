package inflight_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

// wait lets time pass, and what then happens.
func wait(t time.Duration) {
	<-time.After(t)
	synctest.Wait()
}

func TestOverdueSlotDoesNotCountAgainstTheTotal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("a", "a", inflight.Urgent), "both slots are free")
		wait(100 * time.Millisecond)
		require.True(t, l.Enter("b", "b", inflight.Urgent), "one slot is free")
		for _, key := range []string{"c", "d", "e"} {
			visit(t, l, key, key, inflight.Urgent)
		}
		wait(299 * time.Millisecond)
		require.Empty(t, o.got())
		wait(time.Millisecond)
		assert.Equal(t, []string{"c"}, o.got(), "a is overdue")
		wait(100 * time.Millisecond)
		assert.Equal(t, []string{"c", "d"}, o.got(), "b is overdue")
		l.Leave("a")
		assert.Equal(t, []string{"c", "d"}, o.got(), "the end of a is no slot for others")
		use(t, l, "c", "c")
		assert.Equal(t, []string{"c", "d", "e"}, o.got())
		assert.Equal(t, 3, l.InFlight(), "b, d and e")
	})
}

func TestNamespaceWithAnOverdueSlotBeginsAgainWithOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{}, o.granted)
		require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
		observeInTime(l, "shop", 3)
		wait(200 * time.Millisecond)
		require.True(t, l.Enter("shop", "second", inflight.Urgent), "answers in time have earned a second slot")
		wait(200 * time.Millisecond)
		visit(t, l, "shop", "third", inflight.Urgent)
		visit(t, l, "shop", "fourth", inflight.Urgent)
		l.Leave("first")
		assert.Empty(t, o.got(), "the second one is not overdue")
		l.Leave("second")
		assert.Equal(t, []string{"third"}, o.got())
		use(t, l, "shop", "third")
		assert.Equal(t, []string{"third", "fourth"}, o.got())
	})
}

// The writes of a namespace may be slow and succeed: one after the other would take hours.
func TestNamespaceWhoseSlotsAreAllOverdueGetsOneMoreWhileFewAreOverdue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{PerNamespace: 3, Spare: 4}, o.granted)
		l.Observe("shop", time.Minute)
		require.True(t, l.Enter("shop", "0", inflight.Urgent), "a slow namespace has one slot")
		for i := range 9 {
			visit(t, l, "shop", fmt.Sprint(1+i), inflight.Urgent)
		}
		for more := range 3 {
			assert.Len(t, o.got(), min(more, 2), "%d are overdue", more)
			wait(400 * time.Millisecond)
		}
		assert.Len(t, o.got(), 2, "it has all that a namespace may have")
		require.True(t, l.Enter("bank", "bank", inflight.Urgent), "a healthy namespace has a slot")
		wait(400 * time.Millisecond)
		l.Leave("0")
		assert.Len(t, o.got(), 3, "three are overdue")
		require.True(t, l.Enter("school", "school", inflight.Urgent), "a healthy namespace has a slot")
		wait(400 * time.Millisecond)
		visit(t, l, "school", "next", inflight.Urgent)
		wait(time.Hour)
		require.Len(t, o.got(), 3, "five are overdue: no namespace has spare slots")
		l.Leave("1")
		require.Len(t, o.got(), 3, "four are")
		l.Leave("2")
		assert.Len(t, o.got(), 5, "three are: both namespaces try one more")
	})
}

func TestOverdueSlotsBeyondTheirBoundCountAgainstTheTotal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{Total: 4, Slow: 2, Overdue: 3}, o.granted)
		for i := range 4 {
			require.True(t, l.Enter(fmt.Sprint(i), fmt.Sprint(i), inflight.Urgent), "%d of 4 slots are free", 4-i)
		}
		wait(time.Second)
		require.True(t, l.Enter("4", "4", inflight.Urgent), "four are overdue: one of them counts")
		wait(time.Second)
		l.Observe("slow", time.Minute)
		visit(t, l, "slow", "slow", inflight.Urgent)
		require.True(t, l.Enter("5", "5", inflight.Urgent), "five are overdue: two of them count")
		require.True(t, l.Enter("6", "6", inflight.Urgent), "six are in flight: three of them count")
		visit(t, l, "7", "7", inflight.Urgent)
		wait(time.Hour)
		require.Empty(t, o.got(), "seven are in flight: no more than three and four")
		l.Leave("0")
		assert.Equal(t, []string{"7"}, o.got(), "what is beyond the bound counts as slow")
		for i := range 3 {
			l.Leave(fmt.Sprint(1 + i))
		}
		assert.Equal(t, []string{"7", "slow"}, o.got())
	})
}

func TestNamespaceIsSlowForAWhile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after   time.Duration
		answers int
		slow    bool
	}{
		"not long ago":                 {after: 5*time.Minute - 1, answers: 0, slow: true},
		"long ago":                     {after: 5 * time.Minute, answers: 0},
		"long ago, and it is busy":     {after: 5 * time.Minute, answers: 16},
		"not long ago, and it is busy": {after: 5*time.Minute - 1, answers: 16, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := inflight.New(inflight.Options{Slow: 1}, func(string) {})
				l.Observe("other", time.Minute)
				l.Observe("shop", time.Minute)
				if tc.answers > 0 {
					require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
				}
				wait(tc.after)
				l.Observe("other", time.Minute)
				require.True(t, l.Enter("other", "other", inflight.Urgent), "it has the slot of the slow ones")
				observeInTime(l, "shop", tc.answers)
				l.Leave("first")
				assert.Equal(t, !tc.slow, l.Enter("shop", "next", inflight.Urgent))
			})
		})
	}
}
