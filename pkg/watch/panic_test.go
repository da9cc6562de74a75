package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// panics counts, by callback, the panics that were logged with their stack.
func (b *logBook) panics(t testing.TB) map[any]int {
	t.Helper()
	calls := map[any]int{}
	for _, line := range b.lines(t, "ERROR", "callback panicked") {
		calls[line["callback"]]++
		assert.Equal(t, line["callback"].(string)+"!", line["panic"])
		assert.Contains(t, line["stack"], "panic_test.go")
	}
	return calls
}

func TestAPanicIsLoggedAndSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{
			Logger:         book.logger(),
			Transform:      func(*unstructured.Unstructured) { panic("Transform!") },
			OnObject:       func(_, _ *unstructured.Unstructured) { panic("OnObject!") },
			OnChange:       func(context.Context, watch.Reader, watch.ChangeStats) error { panic("OnChange!") },
			OnSyncComplete: func(context.Context, watch.Reader, int) error { panic("OnSyncComplete!") },
		})
		pass(time.Minute)
		s.Update(object("a"))
		pass(time.Minute)
		assert.Equal(t, "1002", bulk.Store().Object("default", "a").GetResourceVersion())
		calls := book.panics(t)
		assert.Positive(t, calls["Transform"])
		delete(calls, "Transform")
		assert.Equal(t, map[any]int{"OnObject": 2, "OnChange": 2, "OnSyncComplete": 1}, calls)
	})
}

func TestAPanicOfTooLargeIsLoggedAndSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true, status: 500})
		bulk := startBulk(t, s, watch.Config{Logger: book.logger(), TooLarge: func(error) bool { panic("TooLarge!") }})
		pass(time.Millisecond)
		assert.Equal(t, map[any]int{"TooLarge": 1}, book.panics(t))
		assert.Len(t, book.lines(t, "WARN", "watch failed"), 1, "it is an error like others")
		s.Fault(faults{noStreamList: true})
		pass(time.Minute)
		assert.Equal(t, 1, bulk.Store().Len())
	})
}

func TestASinglesPanicIsLoggedAndSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		single := startSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a", Logger: book.logger(),
			OnChange:       func(context.Context, *unstructured.Unstructured) error { panic("OnChange!") },
			OnSyncComplete: func(context.Context, *unstructured.Unstructured) error { panic("OnSyncComplete!") },
		})
		for range 2 {
			s.Update(object("a"))
			synctest.Wait()
		}
		assert.Equal(t, map[any]int{"OnSyncComplete": 1, "OnChange": 2}, book.panics(t))
		assert.Equal(t, "1003", single.Object().GetResourceVersion(), "the watcher goes on")
	})
}

func TestADebouncersPanicIsLoggedAndSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		debouncer, err := watch.NewDebouncer(watch.DebouncerConfig{
			Callback: func(context.Context, watch.ChangeStats) error { panic("OnChange!") },
			Logger:   book.logger(),
		})
		require.NoError(t, err)
		go debouncer.Run(t.Context())
		for range 2 {
			debouncer.Record(watch.ChangeStats{Created: 1})
			pass(time.Minute)
		}
		assert.Equal(t, map[any]int{"OnChange": 2}, book.panics(t))
	})
}

func TestFailureOfACallbackNamesTheWatcher(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{
			Logger:         book.logger(),
			OnObject:       func(_, _ *unstructured.Unstructured) { panic("OnObject!") },
			OnChange:       func(context.Context, watch.Reader, watch.ChangeStats) error { return errSame },
			OnSyncComplete: func(context.Context, watch.Reader, int) error { return errSame },
		})
		startSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a", Logger: book.logger(),
			OnChange:       func(context.Context, *unstructured.Unstructured) error { return errSame },
			OnSyncComplete: func(context.Context, *unstructured.Unstructured) error { return errSame },
		})
		s.Update(object("a"))
		pass(time.Minute)
		watchers := map[any]map[any]bool{}
		for _, line := range book.lines(t, "ERROR", "callback") {
			what := line["resource"]
			if what == nil {
				what = line["object"]
			}
			if watchers[what] == nil {
				watchers[what] = map[any]bool{}
			}
			watchers[what][line["callback"]] = true
		}
		assert.Equal(t, map[any]map[any]bool{
			"ingresses.networking.k8s.io/v1":                {"OnObject": true, "OnChange": true, "OnSyncComplete": true},
			`ingresses.networking.k8s.io/v1 "a" in default`: {"OnChange": true, "OnSyncComplete": true},
		}, watchers)
	})
}
