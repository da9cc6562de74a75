package watch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// Start waits for callbacks. They may call every method, with a context that does not end.
func TestCallbackThatWaitsDoesNotKeepTheWatcherFromEnding(t *testing.T) {
	t.Parallel()
	waits := map[string]struct {
		wait func(ctx context.Context, w starter) error
		want error
	}{
		"WaitForSync": {waitForSync, watch.ErrStopped},
		"Start":       {func(ctx context.Context, w starter) error { return w.Start(ctx) }, nil},
	}
	ends := map[string]func(cancel context.CancelFunc, w starter){
		"Stop":    func(_ context.CancelFunc, w starter) { w.Stop() },
		"context": func(cancel context.CancelFunc, _ starter) { cancel() },
	}
	for what, c := range waits {
		for how, end := range ends {
			for kind, watcher := range map[string]func(t bubble, s *apiServer, call func(context.Context, error)) starter{
				"Bulk": func(t bubble, s *apiServer, call func(context.Context, error)) starter {
					return newBulk(t, s, watch.Config{OnWatchError: call})
				},
				"Single": func(t bubble, s *apiServer, call func(context.Context, error)) starter {
					return newSingle(t, s, watch.SingleConfig{GVR: ingresses, Namespace: "default", Name: "a", OnWatchError: call})
				},
			} {
				t.Run(kind+", "+what+", "+how, func(t *testing.T) {
					t.Parallel()
					inBubble(t, func(t bubble) {
						s := newServer(t, object("a"))
						s.Fault(faults{refuse: true})
						waited := make(chan error, 1)
						var w starter
						w = watcher(t, s, func(ctx context.Context, _ error) { waited <- c.wait(context.WithoutCancel(ctx), w) })
						ctx, cancel := context.WithCancel(t.Context())
						ended := make(chan error, 1)
						go func() { ended <- w.Start(ctx) }()
						pass(time.Minute)
						assert.Empty(t, waited)
						end(cancel, w)
						require.ErrorIs(t, <-waited, c.want)
						require.NoError(t, <-ended)
						cancel()
					})
				})
			}
		}
	}
}

func waitForSync(ctx context.Context, w starter) error {
	if bulk, ok := w.(*watch.Bulk); ok {
		_, err := bulk.WaitForSync(ctx)
		return err
	}
	return w.(*watch.Single).WaitForSync(ctx)
}

// The kind shows its scope before the watcher has ended.
func TestWaitForSyncInACallbackReturnsTheErrorOfASingle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{status: 500})
		waited := make(chan error, 1)
		var single *watch.Single
		single = newSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Name: "a",
			OnWatchError: func(ctx context.Context, _ error) { waited <- single.WaitForSync(context.WithoutCancel(ctx)) },
		})
		ended := make(chan error, 1)
		go func() { ended <- single.Start(t.Context()) }()
		pass(time.Second)
		s.Fault(faults{})
		for _, err := range []error{<-waited, <-ended} {
			var fault *watch.ConfigError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, "Namespace", fault.Field)
		}
	})
}

func TestCallbacksOfASingleDoNotOverlap(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		slow := func(name string) func(context.Context, *unstructured.Unstructured) error {
			return func(context.Context, *unstructured.Unstructured) error {
				calls.add("%s begins", name)
				<-time.After(time.Minute)
				calls.add("%s ends", name)
				return nil
			}
		}
		s := newServer(t, object("a"))
		startSingle(t, s, watch.SingleConfig{
			GVR: ingresses, Namespace: "default", Name: "a", OnSyncComplete: slow("sync"), OnChange: slow("change"),
		})
		for range 3 {
			s.Update(object("a"))
			pass(40 * time.Second)
		}
		pass(10 * time.Minute)
		assert.Equal(t, []string{
			"sync begins", "sync ends", "change begins", "change ends", "change begins", "change ends",
		}, calls.read())
	})
}

// What waits for the context returns its error: that is how every watcher ends.
func TestErrorOfAContextThatHasEndedIsNoFailureOfACallback(t *testing.T) {
	t.Parallel()
	cause := errors.New("the program ends")
	for name, c := range map[string]struct {
		returns func(ctx context.Context) error
		failed  bool
	}{
		"its error":        {func(ctx context.Context) error { return fmt.Errorf("read: %w", ctx.Err()) }, false},
		"its cause":        {context.Cause, false},
		"another error":    {func(context.Context) error { return errSame }, true},
		"no context's end": {func(context.Context) error { return context.DeadlineExceeded }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var book logBook
				s := newServer(t, object("a"))
				ctx, cancel := context.WithCancelCause(t.Context())
				returns := func(ctx context.Context) error { <-ctx.Done(); return c.returns(ctx) }
				startIn(ctx, t, newBulk(t, s, watch.Config{
					Logger: book.logger(), OnChange: func(ctx context.Context, _ watch.Reader, _ watch.ChangeStats) error { return returns(ctx) },
				}))
				startIn(ctx, t, newBulk(t, s, watch.Config{
					Logger: book.logger(), OnSyncComplete: func(ctx context.Context, _ watch.Reader, _ int) error { return returns(ctx) },
				}))
				startIn(ctx, t, newSingle(t, s, watch.SingleConfig{
					GVR: ingresses, Namespace: "default", Name: "a",
					Logger: book.logger(), OnSyncComplete: func(ctx context.Context, _ *unstructured.Unstructured) error { return returns(ctx) },
				}))
				cancel(cause)
				pass(time.Minute)
				want := map[bool]int{true: 3}[c.failed]
				assert.Len(t, book.lines(t, "ERROR", "callback failed"), want)
				assert.Len(t, book.lines(t, "DEBUG+3", "callback ended with its context"), 3-want)
			})
		})
	}
}

func TestErrorOfAnotherContextIsAFailureOfACallback(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		startBulk(t, newServer(t, object("a")), watch.Config{
			Logger: book.logger(), OnChange: func(context.Context, watch.Reader, watch.ChangeStats) error { return context.Canceled },
		})
		assert.Len(t, book.lines(t, "ERROR", "callback failed"), 1)
	})
}
