package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// single is the configuration of a Single whose callbacks write to the journal.
func (j *journal) single(name string) watch.SingleConfig {
	return watch.SingleConfig{
		GVR: ingresses, Namespace: "default", Name: name,
		OnChange: func(_ context.Context, u *unstructured.Unstructured) error {
			j.add("change %s", show(u))
			return nil
		},
		OnSyncComplete: func(_ context.Context, u *unstructured.Unstructured) error {
			j.add("synced %s", show(u))
			return nil
		},
	}
}

func newSingle(t testing.TB, s *apiServer, config watch.SingleConfig) *watch.Single {
	t.Helper()
	single, err := watch.NewSingle(config, s.client(t))
	require.NoError(t, err)
	return single
}

func startSingle(t testing.TB, s *apiServer, config watch.SingleConfig) *watch.Single {
	t.Helper()
	single := newSingle(t, s, config)
	start(t, single)
	return single
}

func TestSingleWatcher(t *testing.T) {
	t.Parallel()
	// Mutation: the handler's default case does not call inbox.put.
	scenario(t, "SingleWatcher delivers immediate callback on resource update", func(t bubble) {
		var calls journal
		s := newServer(t, object("a", generation(1)), object("b", generation(1)))
		single := startSingle(t, s, calls.single("a"))
		calls.read()
		began := time.Now()
		s.Update(object("b", generation(2)))
		s.Update(object("a", generation(2), class("haproxy")))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1004"}, calls.read())
		assert.Zero(t, time.Since(began), "no time has passed")
		assert.Equal(t, "haproxy", single.Object().Object["spec"].(map[string]any)["ingressClassName"])
		for _, request := range s.Requests() {
			assert.Equal(t, "metadata.name=a", request.Get("fieldSelector"), "the server selects")
		}
		s.Delete(object("a"))
		synctest.Wait()
		assert.Equal(t, []string{"change none"}, calls.read())
	})

	// Mutation: unchanged does not look at isResync.
	scenario(t, "SingleWatcher filters resync events by resourceVersion", func(t bubble) {
		var calls journal
		var book logBook
		s := newServer(t, object("a")) // no generation, which would filter too
		config := calls.single("a")
		config.Logger = book.logger()
		startSingle(t, s, config)
		calls.read()
		pass(29 * time.Second)
		assert.Empty(t, book.lines(t, "DEBUG+2", "skipped a resync"))
		pass(time.Second)
		assert.Len(t, book.lines(t, "DEBUG+2", "skipped a resync"), 1, "resync after 30 s")
		relist(s)
		assert.Empty(t, calls.read())
		s.Update(object("a"))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1003"}, calls.read())
	})

	// Mutation: sameGeneration always returns false.
	scenario(t, "SingleWatcher filters status-only updates by generation", func(t bubble) {
		var calls journal
		s := newServer(t, object("a", generation(3)))
		startSingle(t, s, calls.single("a"))
		calls.read()
		s.Update(object("a", generation(3), with("ready", "status", "phase")))
		synctest.Wait()
		assert.Empty(t, calls.read())
		s.Update(object("a", generation(4)))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1003"}, calls.read())
	})

	// Mutation: put notes a change also before sync.
	scenario(t, "SingleWatcher suppresses callbacks during initial sync", func(t bubble) {
		s := newServer(t, object("a", generation(1)))
		s.Fault(faults{status: 503})
		var first, second journal
		startSingle(t, s, first.single("a"))
		alone := second.single("a")
		alone.OnSyncComplete = nil
		startSingle(t, s, alone)
		s.Delete(object("a"))
		s.Create(object("a", generation(1)))
		s.Update(object("a", generation(2)))
		s.Fault(faults{})
		pass(time.Minute)
		assert.Equal(t, []string{"synced a@1004"}, first.read())
		assert.Empty(t, second.read())
		s.Update(object("a", generation(3)))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1005"}, first.read())
		assert.Equal(t, []string{"change a@1005"}, second.read())
	})

	// Mutation: start does not set l.started.
	scenario(t, "Start is idempotent", func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		single := startSingle(t, s, calls.single("a"))
		requests := len(s.Requests())
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 2)
		for range 2 {
			go func() { returned <- single.Start(ctx) }()
		}
		pass(time.Hour)
		assert.Empty(t, returned, "further calls block")
		assert.Equal(t, []string{"synced a@1001"}, calls.read())
		cancel()
		require.NoError(t, <-returned)
		require.NoError(t, <-returned)
		s.Update(object("a"))
		synctest.Wait()
		assert.Equal(t, []string{"change a@1002"}, calls.read(), "the first call goes on")
		// In an hour, a stream is renewed now and then; a second informer would list.
		for _, request := range s.Requests()[requests:] {
			assert.Empty(t, request.Get("sendInitialEvents"))
		}
	})
}

func TestWatchErrorHandling(t *testing.T) {
	t.Parallel()
	// Mutation: record logs at debug level.
	scenario(t, "Watch error logged and timestamp recorded", func(t bubble) {
		var calls journal
		var book logBook
		config := calls.single("a")
		config.Logger = book.logger()
		s := newServer(t, object("a", generation(1)))
		single := startSingle(t, s, config)
		at, err := single.LastWatchError()
		require.NoError(t, err)
		require.Zero(t, at)
		pass(time.Second)
		s.Fault(faults{refuse: true})
		s.Drop(nil)
		pass(10 * time.Second)
		at, err = single.LastWatchError()
		require.ErrorContains(t, err, "connection refused")
		assert.NotZero(t, at)
		assert.NotEmpty(t, book.lines(t, "WARN", "watch failed"))
		s.Fault(faults{})
		s.Update(object("a", generation(2)))
		pass(time.Minute)
		assert.Equal(t, []string{"synced a@1001", "change a@1002"}, calls.read(), "the watcher has tried again")
	})

	// Mutation: callBack returns after an error.
	scenario(t, "Callback failure does not stop watcher", func(t bubble) {
		var calls journal
		var book logBook
		config := calls.single("a")
		config.Logger = book.logger()
		config.OnChange = func(_ context.Context, u *unstructured.Unstructured) error {
			calls.add("change %s", show(u))
			return errors.New("no disk space")
		}
		s := newServer(t, object("a", generation(1)))
		startSingle(t, s, config)
		s.Update(object("a", generation(2)))
		synctest.Wait()
		s.Update(object("a", generation(3)))
		synctest.Wait()
		assert.Equal(t, []string{"synced a@1001", "change a@1002", "change a@1003"}, calls.read())
		failed := book.lines(t, "ERROR", "callback failed")
		require.Len(t, failed, 2)
		assert.Equal(t, "no disk space", failed[0]["error"])
		assert.Equal(t, "OnChange", failed[0]["callback"])
	})
}
