package watch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// timed notes when, counted from now, OnChange was called.
func (j *journal) timed() func(context.Context, watch.Reader, watch.ChangeStats) error {
	began := time.Now()
	return func(_ context.Context, _ watch.Reader, stats watch.ChangeStats) error {
		j.add("%s after %s", stats, time.Since(began))
		return nil
	}
}

// gate holds the initial sync up at its second object, until it is opened.
func gate() (hold func(before, now *unstructured.Unstructured), open func()) {
	gate := make(chan struct{})
	var seen atomic.Int32
	return func(_, _ *unstructured.Unstructured) {
		if seen.Add(1) == 2 {
			<-gate
		}
	}, func() { close(gate) }
}

func TestChangeDebouncing(t *testing.T) {
	t.Parallel()
	// Mutation: due waits for the interval before the first callback.
	scenario(t, "Leading-edge trigger fires immediately", func(t bubble) {
		var calls journal
		s := newServer(t)
		startBulk(t, s, watch.Config{OnChange: calls.timed()})
		s.Create(object("a"))
		synctest.Wait()
		assert.Equal(t, []string{"+1 ~0 -0 after 0s"}, calls.read())
		pass(5 * time.Second)
		s.Create(object("b"))
		synctest.Wait()
		assert.Equal(t, []string{"+1 ~0 -0 after 5s"}, calls.read(), "after a quiet interval, too")
	})

	// Mutation: due ignores wait.
	scenario(t, "Changes within refractory period are batched", func(t bubble) {
		var calls journal
		s := newServer(t)
		startBulk(t, s, watch.Config{OnChange: calls.timed(), DebounceInterval: 7 * time.Second})
		s.Create(object("a"))
		pass(time.Second)
		s.Create(object("b"))
		pass(time.Second)
		s.Update(object("b"))
		pass(4 * time.Second)
		assert.Equal(t, []string{"+1 ~0 -0 after 0s"}, calls.read())
		pass(time.Minute)
		assert.Equal(t, []string{"+1 ~1 -0 after 7s"}, calls.read())
	})

	// Mutation: held always returns false.
	scenario(t, "Callbacks suppressed during sync when configured", func(t bubble) {
		var calls journal
		hold, open := gate()
		s := newServer(t, object("a"), object("b"), object("c"))
		startBulk(t, s, watch.Config{OnChange: calls.onChange, OnSyncComplete: calls.onSync, OnObject: hold})
		pass(time.Minute)
		assert.Empty(t, calls.read())
		open()
		synctest.Wait()
		assert.Equal(t, []string{"change +3 ~0 -0 initial=false", "synced 3 of 3"}, calls.read())
	})

	// Mutation: Flush does not set d.flush.
	scenario(t, "Flush delivers pending changes immediately", func(t bubble) {
		var calls journal
		hold, open := gate()
		s := newServer(t, object("a"), object("b"), object("c"))
		bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange, OnObject: hold})
		bulk.Flush()
		synctest.Wait()
		assert.Equal(t, []string{"change +2 ~0 -0 initial=true"}, calls.read(), "although callbacks are suppressed")
		open()
		synctest.Wait()
		calls.read()
		s.Update(object("a"))
		synctest.Wait()
		assert.Empty(t, calls.read(), "within the interval")
		bulk.Flush()
		synctest.Wait()
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read())
	})
}

func TestChangeStatistics(t *testing.T) {
	t.Parallel()
	// Mutation: plus does not add Deleted.
	scenario(t, "Statistics aggregate multiple changes", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{OnChange: calls.onChange})
		calls.read()
		s.Create(object("b"))
		s.Create(object("c"))
		s.Delete(object("a"))
		pass(time.Minute)
		assert.Equal(t, []string{"change +2 ~0 -1 initial=false"}, calls.read())
	})

	// Mutation: due does not set IsInitialSync.
	scenario(t, "IsInitialSync reflects sync state", func(t bubble) {
		var calls journal
		hold, open := gate()
		s := newServer(t, object("a"), object("b"), object("c"))
		bulk := startBulk(t, s, watch.Config{
			OnChange: calls.onChange, OnObject: hold, CallOnChangeDuringSync: true, DebounceInterval: time.Hour,
		})
		require.Len(t, calls.entries, 1, "the leading edge")
		assert.Contains(t, calls.read()[0], "initial=true")
		assert.False(t, bulk.IsSynced(), "the first objects are still being handled")
		open()
		synctest.Wait()
		require.Len(t, calls.entries, 1, "the rest, at the end of the sync")
		assert.Contains(t, calls.read()[0], "initial=false")
		s.Update(object("a"))
		pass(2 * time.Hour)
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read())
	})

	// Mutation: Run calls back without looking at Empty.
	scenario(t, "Empty statistics do not trigger callback", func(t bubble) {
		var calls journal
		s := newServer(t)
		bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange, OnSyncComplete: calls.onSync})
		bulk.Flush()
		pass(time.Hour)
		assert.Equal(t, []string{"synced 0 of 0"}, calls.read())
		s.Create(object("a"))
		synctest.Wait()
		assert.Equal(t, []string{"change +1 ~0 -0 initial=false"}, calls.read())
		bulk.Flush()
		pass(time.Hour)
		assert.Empty(t, calls.read(), "nothing has changed since")
	})
}
