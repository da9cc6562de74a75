package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// failures keeps the last error of list and watch, and reports it.
type failures struct {
	log      *slog.Logger
	callback func(ctx context.Context, err error)
	wake     chan struct{} // holds one token: there is an error to report

	mu         sync.Mutex
	at         time.Time
	err        error
	unreported error // nil once it is reported
}

func newFailures(log *slog.Logger, callback func(context.Context, error)) *failures {
	return &failures{log: log, callback: callback, wake: make(chan struct{}, 1)}
}

func (f *failures) last() (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.err
}

// record logs, keeps and reports the error, also one that has come before,
// unless it is the end of the watcher.
func (f *failures) record(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	f.log.Warn("watch failed; retrying", "error", err)
	f.mu.Lock()
	f.at, f.err, f.unreported = time.Now(), err, err
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// expired logs an error that belongs to normal operation.
func (f *failures) expired(ctx context.Context, err error) {
	f.log.Log(ctx, levelDebug, "watch expired; listing again", "error", err)
}

// handle is for the errors that client-go reports. Those of a list or watch,
// which were recorded where they happened, come here once more, wrapped. So do
// those that were not recorded because a version has expired.
func (f *failures) handle(ctx context.Context, _ *cache.Reflector, err error) {
	if _, recorded := f.last(); !errors.Is(err, recorded) && !isExpired(err) {
		f.record(ctx, err)
	}
}

// report calls OnWatchError, on the calling goroutine, until the context ends.
// It has a goroutine of its own: an OnChange that blocks must not hide that the
// watch is broken, and an OnWatchError that blocks must not delay its repair.
func (f *failures) report(ctx context.Context) {
	if f.callback == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		if ctx.Err() != nil { // both were ready
			return
		}
		f.mu.Lock()
		err := f.unreported
		f.unreported = nil
		f.mu.Unlock()
		if err == nil { // it was reported for the token of the one before it
			continue
		}
		protect(f.log, "OnWatchError", func() { f.callback(ctx, err) })
	}
}
