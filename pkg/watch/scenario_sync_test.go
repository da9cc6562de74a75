package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestInitialSyncTracking(t *testing.T) {
	t.Parallel()
	// Mutation: run closes synced before it waits for the registration.
	scenario(t, "IsSynced transitions after cache sync", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		s.Fault(faults{status: 503})
		bulk := startBulk(t, s, watch.Config{})
		single := startSingle(t, s, calls.single("a"))
		pass(time.Minute)
		assert.False(t, bulk.IsSynced(), "the server answers 503")
		assert.False(t, single.IsSynced(), "the server answers 503")
		s.Fault(faults{})
		pass(time.Minute)
		assert.True(t, bulk.IsSynced(), "the server answers")
		assert.True(t, single.IsSynced(), "the server answers")
		s.Fault(faults{refuse: true})
		s.Drop(nil)
		pass(time.Minute)
		assert.True(t, bulk.IsSynced(), "also while the server is away")
		assert.True(t, single.IsSynced(), "also while the server is away")
	})

	// Mutation: wait does not look at l.synced.
	scenario(t, "WaitForSync blocks until sync completes", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"), object("b"), object("c"))
		s.Fault(faults{status: 503})
		bulk := startBulk(t, s, watch.Config{})
		single := startSingle(t, s, calls.single("a"))
		var returned journal
		go func() {
			count, err := bulk.WaitForSync(t.Context())
			returned.add("bulk %d %v", count, err)
		}()
		go func() { returned.add("single %v", single.WaitForSync(t.Context())) }()
		pass(time.Minute)
		assert.Empty(t, returned.read())
		s.Fault(faults{})
		pass(time.Minute)
		assert.ElementsMatch(t, []string{"bulk 3 <nil>", "single <nil>"}, returned.read())
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3, count, "later calls return at once")
	})

	// Mutation: wait has no case for ctx.Done.
	scenario(t, "WaitForSync respects context cancellation", func(t bubble) {
		var calls journal
		s := newServer(t)
		s.Fault(faults{status: 404})
		bulk := startBulk(t, s, watch.Config{})
		single := startSingle(t, s, calls.single("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := bulk.WaitForSync(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "injected", "the watch error is named, too")
		require.ErrorIs(t, single.WaitForSync(ctx), context.DeadlineExceeded)
		assert.False(t, bulk.IsSynced(), "the list has never come")
	})
}

func TestOnSyncComplete(t *testing.T) {
	t.Parallel()
	// Mutation: completeSync takes the count from a counter that OnChange resets.
	scenario(t, "Bulk Watcher OnSyncComplete fires with resource count", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"), object("b"), object("c"), object("d"), object("e"))
		startBulk(t, s, watch.Config{OnChange: calls.onChange, OnSyncComplete: calls.onSync, CallOnChangeDuringSync: true, DebounceInterval: 1})
		entries := calls.read()
		assert.Equal(t, "synced 5 of 5", entries[len(entries)-1])
		s.Update(object("a"))
		relist(s)
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read(), "synced once")
	})

	// Mutation: open keeps nil instead of the state.
	scenario(t, "SingleWatcher OnSyncComplete delivers current state", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"), object("b"))
		startSingle(t, s, calls.single("b"))
		assert.Equal(t, []string{"synced b@1002"}, calls.read())
		relist(s)
		assert.Empty(t, calls.read())
	})

	// Mutation: deliver does nothing when the state is nil.
	scenario(t, "SingleWatcher OnSyncComplete with missing resource", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"), object("other/b"))
		single := startSingle(t, s, calls.single("b"))
		assert.Equal(t, []string{"synced none"}, calls.read())
		assert.Nil(t, single.Object())
		s.Create(object("b"))
		synctest.Wait()
		assert.Equal(t, []string{"change b@1003"}, calls.read())
	})
}
