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
	kubewatch "k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestStopDuringACallback(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var bulk *watch.Bulk
		var single *watch.Single
		var calls journal
		finish := make(chan struct{})
		s := newServer(t, object("a"))
		bulk = newBulk(t, s, watch.Config{OnSyncComplete: calls.onSync, OnChange: func(ctx context.Context, _ watch.Reader, _ watch.ChangeStats) error {
			bulk.Stop()
			bulk.Stop()
			calls.add("bulk: %v", ctx.Err())
			<-finish
			return nil
		}})
		single = newSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a",
			OnSyncComplete: func(ctx context.Context, _ *unstructured.Unstructured) error {
				single.Stop()
				calls.add("single: %v", ctx.Err())
				<-finish
				return nil
			},
			OnChange: func(context.Context, *unstructured.Unstructured) error { calls.add("late"); return nil },
		})
		for _, w := range []starter{bulk, single} {
			go func() { calls.add("returned %v", w.Start(t.Context())) }()
		}
		pass(time.Minute)
		assert.ElementsMatch(t, []string{"bulk: context canceled", "single: context canceled"}, calls.read(), "Start waits for callbacks")
		s.Update(object("a"))
		close(finish)
		pass(time.Minute)
		assert.Equal(t, []string{"returned <nil>", "returned <nil>"}, calls.read(), "no callback after it")
	})
}

func TestNoCallbackBeginsAfterStop(t *testing.T) {
	t.Parallel()
	type callback func(name string) error
	bulk := func(t bubble, s *apiServer, call callback) starter {
		return newBulk(t, s, watch.Config{
			OnChange:       func(context.Context, watch.Reader, watch.ChangeStats) error { return call("OnChange") },
			OnSyncComplete: func(context.Context, watch.Reader, int) error { return call("OnSyncComplete") },
		})
	}
	single := func(t bubble, s *apiServer, call callback) starter {
		return newSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a",
			OnChange:       func(context.Context, *unstructured.Unstructured) error { return call("OnChange") },
			OnSyncComplete: func(context.Context, *unstructured.Unstructured) error { return call("OnSyncComplete") },
		})
	}
	cases := map[string]struct {
		watcher func(t bubble, s *apiServer, call callback) starter
		stopAt  string
		want    []string
	}{
		"Bulk, during OnChange":         {bulk, "OnChange", []string{"OnChange"}},
		"Bulk, during OnSyncComplete":   {bulk, "OnSyncComplete", []string{"OnChange", "OnSyncComplete"}},
		"Single, during OnChange":       {single, "OnChange", []string{"OnSyncComplete", "OnChange"}},
		"Single, during OnSyncComplete": {single, "OnSyncComplete", []string{"OnSyncComplete"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What is chosen where a stop and a change are both there is random.
			for range 20 {
				inBubble(t, func(t bubble) {
					var calls journal
					var w starter
					s := newServer(t, object("a"))
					w = c.watcher(t, s, func(name string) error {
						calls.add("%s", name)
						if name == c.stopAt {
							s.Update(object("a"))
							<-time.After(time.Minute) // it has arrived, and is due
							w.Stop()
						}
						return nil
					})
					ended := make(chan error, 1)
					go func() { ended <- w.Start(t.Context()) }()
					pass(time.Second)
					s.Update(object("a"))
					require.NoError(t, <-ended)
					assert.Equal(t, c.want, calls.read())
				})
			}
		})
	}
}

// client-go does not wait for a list that is running.
func TestNoTooLargeAfterStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t)
		s.Fault(faults{noStreamList: true, hangAfter: 1})
		bulk := newBulk(t, s, watch.Config{TooLarge: func(err error) bool { calls.add("called: %v", err); return true }})
		ended := make(chan error, 1)
		go func() { ended <- bulk.Start(t.Context()) }()
		pass(time.Second)
		require.Len(t, lists(s), 1, "it is being answered")
		bulk.Stop()
		require.NoError(t, <-ended)
		pass(time.Minute)
		assert.Empty(t, calls.read())
		assert.Len(t, lists(s), 1)
	})
}

func TestStartAfterStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t)
		for _, w := range []starter{newBulk(t, s, watch.Config{}), newSingle(t, s, calls.single("a"))} {
			w.Stop()
			w.Stop()
			require.ErrorIs(t, w.Start(t.Context()), watch.ErrStopped)
			require.ErrorIs(t, w.Start(t.Context()), watch.ErrStopped, "the error of the first")
		}
		bulk := newBulk(t, s, watch.Config{})
		bulk.Stop()
		_, err := bulk.WaitForSync(t.Context())
		require.ErrorIs(t, err, watch.ErrStopped, "it will never sync")
		assert.Empty(t, s.Requests())
	})
}

// A loop that starts a watcher again would otherwise take its end for a run.
func TestStartAfterTheEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t)
		for _, w := range []starter{newBulk(t, s, watch.Config{}), newSingle(t, s, (&journal{}).single("a"))} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() { ended <- w.Start(ctx) }()
			}
			pass(time.Minute)
			cancel()
			require.NoError(t, <-ended)
			require.NoError(t, <-ended, "it began before the end")
			require.ErrorIs(t, w.Start(t.Context()), watch.ErrStopped)
			require.ErrorIs(t, w.Start(ctx), watch.ErrStopped, "also with a context that has ended")
		}
	})
}

// client-go pauses after these errors of a streamed list without looking at the
// context.
func TestStopEndsThePauseAfterAStreamedListFailed(t *testing.T) {
	t.Parallel()
	watchers := map[string]func(t bubble, s *apiServer, book *logBook) starter{
		"Bulk": func(t bubble, s *apiServer, book *logBook) starter {
			return newBulk(t, s, watch.Config{Logger: book.logger()})
		},
		"Single": func(t bubble, s *apiServer, book *logBook) starter {
			return newSingle(t, s, watch.SingleConfig{GVR: ingresses, Namespace: "default", Name: "a", Logger: book.logger()})
		},
	}
	for reason, fault := range map[string]faults{"connection refused": {refuse: true}, "too many requests": {status: 429}} {
		for name, watcher := range watchers {
			t.Run(name+", "+reason, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t bubble) {
					var book logBook
					s := newServer(t, object("a"))
					s.Fault(fault)
					w := watcher(t, s, &book)
					ended := make(chan error, 1)
					go func() { ended <- w.Start(t.Context()) }()
					pass(10 * time.Minute)
					failures := len(book.lines(t, "WARN", "watch failed"))
					assert.Less(t, failures, 40, "the pauses grow")
					assert.Greater(t, failures, 10, "to a minute at most")
					if requests := s.Requests(); fault.status != 0 {
						assert.Len(t, requests, failures, "each is reported once")
						for _, r := range requests {
							assert.Equal(t, "true", r.Get("sendInitialEvents"), "no list in between")
						}
					}
					stopped := time.Now()
					w.Stop()
					require.NoError(t, <-ended)
					assert.Zero(t, time.Since(stopped))
				})
			})
		}
	}
}

func TestStopEndsThePauseAfterAnErrorInAStreamedList(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		events := make(chan kubewatch.Event, 1)
		events <- kubewatch.Event{Type: kubewatch.Error, Object: failure(429, "TooManyRequests")}
		close(events)
		client := &ordered{streams: make(chan kubewatch.Interface, 1), listing: make(chan bool, 10)} // cannot list
		client.streams <- kubewatch.NewProxyWatcher(events)
		var book logBook
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName, Logger: book.logger()}, client)
		require.NoError(t, err)
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- bulk.Start(t.Context()) }()
		synctest.Wait()
		bulk.Stop()
		require.NoError(t, <-ended)
		assert.Zero(t, time.Since(began))
		assert.Len(t, book.lines(t, "WARN", "watch failed"), 1)
		_, err = bulk.LastWatchError()
		assert.ErrorContains(t, err, "injected")
	})
}

func TestWaitForSyncHasErrorAndCauseOfContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t)
		s.Fault(faults{hang: true})
		cause := errors.New("the other one has failed")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := startBulk(t, s, watch.Config{}).WaitForSync(ctx)
		for _, err := range []error{err, startSingle(t, s, (&journal{}).single("a")).WaitForSync(ctx)} {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
			assert.ErrorContains(t, err, "context canceled: the other one has failed")
		}
	})
}
