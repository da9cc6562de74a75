package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// say logs to the logger of a callback's context.
func say(ctx context.Context, callback string) error {
	klog.FromContext(ctx).Info(callback)
	return nil
}

// A program may keep its logger in the context of Start. Its callbacks log to
// that one, and client-go to the watcher's.
func TestCallbacksHaveTheLoggerOfStartsContext(t *testing.T) {
	t.Parallel()
	watchers := map[string]func(t bubble, s *apiServer, logger logr.Logger) starter{
		"Bulk": func(t bubble, s *apiServer, logger logr.Logger) starter {
			return newBulk(t, s, watch.Config{
				Logger:         logger,
				OnChange:       func(ctx context.Context, _ watch.Reader, _ watch.ChangeStats) error { return say(ctx, "OnChange") },
				OnSyncComplete: func(ctx context.Context, _ watch.Reader, _ int) error { return say(ctx, "OnSyncComplete") },
				OnWatchError:   func(ctx context.Context, _ error) { _ = say(ctx, "OnWatchError") },
			})
		},
		"Single": func(t bubble, s *apiServer, logger logr.Logger) starter {
			return newSingle(t, s, watch.SingleConfig{
				GVR: ingresses, Name: "a", Logger: logger, // without a namespace: the scope is asked for, too
				OnChange:       func(ctx context.Context, _ *unstructured.Unstructured) error { return say(ctx, "OnChange") },
				OnSyncComplete: func(ctx context.Context, _ *unstructured.Unstructured) error { return say(ctx, "OnSyncComplete") },
				OnWatchError:   func(ctx context.Context, _ error) { _ = say(ctx, "OnWatchError") },
			})
		},
	}
	var other logBook
	for name, watcher := range watchers {
		for which, logger := range map[string]logr.Logger{"no logger": {}, "another logger": other.logger()} {
			t.Run(name+" with "+which, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t bubble) {
					var book logBook
					s := newServer(t)
					s.clusterScoped = true
					startIn(logr.NewContext(t.Context(), book.logger()), t, watcher(t, s, logger))
					s.Create(object("a", func(u *unstructured.Unstructured) { u.SetNamespace("") }))
					pass(time.Minute)
					s.Break(reset())
					pass(time.Minute)
					var callbacks []any
					for _, line := range book.all(t) {
						callbacks = append(callbacks, line["msg"])
					}
					assert.Equal(t, []any{"OnSyncComplete", "OnChange", "OnWatchError"}, callbacks)
				})
			})
		}
	}
}
