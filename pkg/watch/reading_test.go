package watch_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// The tests of this file hold the readings of the specification where it
// has space.

func TestUpdatesOfKindsWithoutGenerationAreDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		startSingle(t, s, calls.single("a"))
		calls.read()
		s.Update(object("a", with("x", "data", "key")))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1002"}, calls.read(), "0 is no generation")
	})
}

func TestAnIndexNeedNotBeUniqueAndKeysMove(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a", class("x")), object("b", class("x")), object("web/a", class("x")))
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"spec.ingressClassName"}})
		store := bulk.Store()
		assert.Len(t, store.Get("x"), 3)
		s.Delete(object("a", class("x")))
		synctest.Wait()
		assert.Equal(t, []string{"b", "a"}, names(store.Get("x")), "the others under the key stay, of the same name, too")
		s.Update(object("b", class("y")))
		synctest.Wait()
		assert.Equal(t, []string{"a"}, names(store.Get("x")), "a moved object leaves its place")
		assert.Equal(t, []string{"b"}, names(store.Get("y")))
		s.Delete(object("b", class("z")))
		synctest.Wait()
		assert.Empty(t, store.Get("y"), "the key of a deleted object does not matter")
		assert.Equal(t, 1, store.Len())
	})
}

func TestSyncedMeansThatTheHandlerHasSeenEverything(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		hold, open := gate()
		s := newServer(t, object("a"), object("b"), object("c"))
		bulk := startBulk(t, s, watch.Config{OnObject: hold})
		pass(time.Minute)
		assert.False(t, bulk.IsSynced(), "the informer has, the handler has not")
		open()
		synctest.Wait()
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3, count)
	})
}

func TestTheInitialCountIsWhatIsInTheStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("a", class("x")), object("b", class("y")), object("c", class("x")))
		bulk := startBulk(t, s, watch.Config{
			FieldSelector: "spec.ingressClassName=x", OnSyncComplete: calls.onSync,
			OnChange: calls.onChange, CallOnChangeDuringSync: true, DebounceInterval: 1,
		})
		assert.Contains(t, calls.read(), "synced 2 of 2")
		s.Create(object("d", class("x")))
		synctest.Wait()
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, count, "what came later does not count")
	})
}

func TestBulkCallbacksNeverOverlapAndHoldNoLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var running, overlaps, calls atomic.Int32
		gate := make(chan struct{})
		enter := func() {
			calls.Add(1)
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			<-gate
			running.Add(-1)
		}
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{
			DebounceInterval: time.Second,
			OnChange:         func(context.Context, watch.Reader, watch.ChangeStats) error { enter(); return nil },
			OnSyncComplete:   func(context.Context, watch.Reader, int) error { enter(); return nil },
		})
		for range 20 {
			s.Update(object("a"))
			pass(time.Second)
			assert.True(t, bulk.IsSynced(), "answers while a callback runs")
			_, err := bulk.WaitForSync(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, bulk.Store().Len())
		}
		close(gate)
		pass(time.Minute)
		assert.Zero(t, overlaps.Load())
		assert.EqualValues(t, 3, calls.Load(), "sync's changes, sync, and the twenty updates at once")
	})
}

func TestCallbacksMayCallBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var bulk *watch.Bulk
		var single *watch.Single
		var calls journal
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		s := newServer(t, object("a"))
		useBulk := func(ctx context.Context) error {
			bulk.Flush()
			_, err := bulk.WaitForSync(ctx)
			calls.add("bulk %t %v %d %v", bulk.IsSynced(), err, len(bulk.Store().List()), bulk.Start(ended))
			_, err = bulk.LastWatchError()
			return err
		}
		bulk = newBulk(t, s, watch.Config{
			OnChange:       func(ctx context.Context, _ watch.Reader, _ watch.ChangeStats) error { return useBulk(ctx) },
			OnSyncComplete: func(ctx context.Context, _ watch.Reader, _ int) error { return useBulk(ctx) },
		})
		useSingle := func(ctx context.Context, u *unstructured.Unstructured) error {
			calls.add("single %t %v %t %v", single.IsSynced(), single.WaitForSync(ctx), single.Object() == u, single.Start(ended))
			_, err := single.LastWatchError()
			return err
		}
		single = newSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a", OnChange: useSingle, OnSyncComplete: useSingle,
		})
		start(t, bulk)
		start(t, single)
		s.Update(object("a"))
		pass(time.Minute)
		assert.Equal(t, []string{
			"bulk true <nil> 1 <nil>", "bulk true <nil> 1 <nil>", "single true <nil> true <nil>",
			"single true <nil> true <nil>", "bulk true <nil> 1 <nil>",
		}, calls.read())
	})
}

func TestACallbackThatBlocksLetsEventsArrive(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		const updates = 300
		var calls journal
		release := make(chan struct{})
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{OnChange: func(ctx context.Context, store watch.Reader, stats watch.ChangeStats) error {
			<-release
			return calls.onChange(ctx, store, stats)
		}})
		config := calls.single("a")
		onSync := config.OnSyncComplete
		config.OnSyncComplete = func(ctx context.Context, u *unstructured.Unstructured) error {
			<-release
			return onSync(ctx, u)
		}
		single := startSingle(t, s, config)
		for range updates {
			s.Update(object("a"))
		}
		synctest.Wait()
		assert.Equal(t, "1301", bulk.Store().Object("default", "a").GetResourceVersion(), "the store is up to date")
		assert.Equal(t, "1301", single.Object().GetResourceVersion())
		close(release)
		pass(10 * time.Second)
		assert.ElementsMatch(t, []string{
			"change +1 ~0 -0 initial=false", "change +0 ~300 -0 initial=false",
			"synced a@1001", "change a@1301",
		}, calls.read(), "one call for all; the latest state alone")
	})
}

func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		numbers := map[string]any{
			"9007199254740991.0":  int64(1<<53 - 1),
			"-9007199254740991.0": int64(-1<<53 + 1),
			"9007199254740993.0":  float64(1 << 53), // rounded by the decoder: as an integer it would be another number
			"-9007199254740993.0": float64(-1 << 53),
			"9007199254740994.0":  float64(1<<53 + 2),
			"1e300":               1e300,
			"1e3":                 int64(1000),
			"-0.5":                -0.5,
			"9223372036854775807": int64(1<<63 - 1), // never was a float64
		}
		list := []any{}
		for number := range numbers {
			list = append(list, map[string]any{"is": number, "n": json.Number(number)})
		}
		s := newServer(t, object("a", with(list, "spec", "list")))
		bulk := startBulk(t, s, watch.Config{})
		stored, _, err := unstructured.NestedSlice(bulk.Store().Object("default", "a").Object, "spec", "list")
		require.NoError(t, err)
		for _, item := range stored {
			fields := item.(map[string]any)
			assert.Exactly(t, numbers[fields["is"].(string)], fields["n"], fields["is"])
		}
	})
}

func TestClusterScopedObjects(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		node := func(name string) *unstructured.Unstructured {
			u := object(name)
			u.SetNamespace("")
			return u
		}
		s := newServer(t, node("a"), node("b"))
		s.clusterScoped = true
		config := calls.single("a")
		config.Namespace = ""
		startSingle(t, s, config)
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"metadata.name"}})
		assert.Equal(t, []string{"a"}, names(bulk.Store().Get("a")))
		s.Delete(node("a"))
		synctest.Wait()
		assert.Equal(t, []string{"synced a@1001", "change none"}, calls.read())
		assert.Equal(t, []string{"b"}, names(bulk.Store().List()))
		assert.Nil(t, bulk.Store().Object("", "a"))
	})
}

func TestBulkOfANamespace(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]faults{"listed": {noStreamList: true}, "streamed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("web/a"), object("default/b"))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{Namespace: "web"})
				assert.Equal(t, []string{"a"}, names(bulk.Store().List()), "the initial list")
				s.Create(object("default/c"))
				s.Create(object("web/d"))
				synctest.Wait()
				assert.Equal(t, []string{"a", "d"}, names(bulk.Store().List()), "the watch")
			})
		})
	}
}

func TestBulkDoesNotResync(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{Logger: book.logger()})
		pass(time.Hour)
		assert.Empty(t, book.lines(t, "DEBUG+2", "skipped a resync"))
		relist(s)
		assert.Len(t, book.lines(t, "DEBUG+2", "skipped a resync"), 1, "it would have been logged")
	})
}
