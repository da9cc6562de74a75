package inflight_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

func TestNewItemWaitsBehindTheItemsOfItsNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{}, o.granted)
		require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
		visit(t, l, "shop", "second", inflight.Urgent)
		l.Observe("shop", 0)
		visit(t, l, "shop", "third", inflight.Urgent)
		l.Leave("first")
		assert.Equal(t, []string{"second", "third"}, o.got(), "the namespace has two slots")
	})
}

func TestItemThatEntersAgainWithItsClassKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{}, o.granted)
		require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
		visit(t, l, "shop", "second", inflight.Retry)
		visit(t, l, "shop", "third", inflight.Retry)
		visit(t, l, "shop", "second", inflight.Retry)
		l.Leave("first")
		assert.Equal(t, []string{"second"}, o.got())
	})
}

func TestFourthSlotGoesToTheLongestWaitOfANamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := inflight.New(inflight.Options{}, o.granted)
		require.True(t, l.Enter("shop", "first", inflight.Urgent), "the namespace has a slot")
		visit(t, l, "shop", "retry", inflight.Retry)
		for _, key := range []string{"a", "b", "c", "d"} {
			visit(t, l, "shop", key, inflight.Urgent)
		}
		for _, key := range []string{"first", "a", "b", "c"} {
			l.Leave(key)
		}
		assert.Equal(t, []string{"a", "b", "c", "retry"}, o.got())
	})
}

func TestNamespacesTakeTurnsWhileTheMostUrgentItemHasNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &order{}
		l := small(o)
		require.True(t, l.Enter("full", "full", inflight.Urgent), "both slots are free")
		visit(t, l, "full", "urgent", inflight.Urgent)
		require.True(t, l.Enter("other", "other", inflight.Urgent), "one slot is free")
		visit(t, l, "shop", "shop", inflight.Background)
		visit(t, l, "bank", "bank", inflight.Background)
		l.Leave("other")
		assert.Equal(t, []string{"shop"}, o.got())
	})
}

func TestOverdueSlotOfANamespaceThatIsNotSlowAnyMoreIsNoSlotForSlowOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Options{Slow: 1}, func(string) {})
		l.Observe("shop", time.Minute)
		require.True(t, l.Enter("shop", "hangs", inflight.Urgent), "a slow namespace has one slot")
		wait(5 * time.Minute)
		require.True(t, l.Enter("other", "other", inflight.Urgent), "the overdue slot does not count")
		observeInTime(l, "shop", 16)
		l.Observe("bank", time.Minute)
		l.Observe("school", time.Minute)
		require.True(t, l.Enter("bank", "bank", inflight.Urgent), "no slow namespace has a slot")
		assert.False(t, l.Enter("school", "school", inflight.Urgent), "bank has the only slot of the slow ones")
	})
}

func TestNamespaceWithASlotInUseIsNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Options{Spare: 1}, func(string) {})
		l.Observe("shop", time.Minute)
		require.True(t, l.Enter("shop", "hangs", inflight.Urgent), "a slow namespace has one slot")
		wait(5 * time.Minute)
		assert.False(t, l.Enter("shop", "next", inflight.Urgent), "its only slot is in use")
	})
}
