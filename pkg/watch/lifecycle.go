package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrStopped is returned by Start of a watcher that was stopped before, and by
// WaitForSync of one that ended before it had synced.
var ErrStopped = errors.New("the watcher was stopped")

// lifecycle is what Bulk and Single share: start once, stop, synced.
type lifecycle struct {
	synced chan struct{} // closed at sync
	ended  chan struct{} // closed when the watcher runs no more, or never will

	mu      sync.Mutex
	started bool
	stopped bool
	cancel  context.CancelFunc
	err     error // of the first Start; read after ended
}

func newLifecycle() *lifecycle {
	return &lifecycle{synced: make(chan struct{}), ended: make(chan struct{})}
}

// start runs the watcher if this is the first call, else waits for the end of
// the context or of the watcher.
func (l *lifecycle) start(ctx context.Context, run func(context.Context) error) error {
	l.mu.Lock()
	if l.started || l.stopped {
		l.mu.Unlock()
		return l.follow(ctx)
	}
	l.started = true
	ctx, l.cancel = context.WithCancel(ctx)
	l.mu.Unlock()
	defer l.cancel()
	l.err = run(ctx)
	close(l.ended)
	return l.err
}

func (l *lifecycle) follow(ctx context.Context) error {
	select {
	case <-l.ended:
		return l.err
	case <-ctx.Done():
		return nil
	}
}

// stop ends the watcher; one that was never started will not start any more.
func (l *lifecycle) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.started:
		l.cancel()
	case !l.stopped:
		l.err = ErrStopped
		close(l.ended)
	}
	l.stopped = true
}

func (l *lifecycle) isSynced() bool {
	select {
	case <-l.synced:
		return true
	default:
		return false
	}
}

// contextError is the error of a context that has ended and, where it has one
// of its own, its cause: errors.Is finds both.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// wait blocks until sync, the end of the watcher or the end of the context. The
// error names the last watch error.
func (l *lifecycle) wait(ctx context.Context, what string, failures *failures) error {
	var cause error
	select {
	case <-l.synced:
	case <-l.ended:
		if cause = l.err; cause == nil {
			cause = ErrStopped
		}
	case <-ctx.Done():
		cause = contextError(ctx)
	}
	if l.isSynced() {
		return nil
	}
	if at, err := failures.last(); err != nil {
		return fmt.Errorf("wait for sync of %s: %w; last watch error, at %s: %w", what, cause, at.UTC().Format("15:04:05Z"), err)
	}
	return fmt.Errorf("wait for sync of %s: %w", what, cause)
}
