package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrStopped is returned by Start of a watcher that has ended or was stopped
// before, and by WaitForSync of one that ends before it has synced.
var ErrStopped = errors.New("the watcher was stopped")

// lifecycle is what Bulk and Single share: start once, stop, synced.
type lifecycle struct {
	synced chan struct{} // closed at sync
	ending chan struct{} // closed when the watcher is to end; callbacks may still be running then

	mu      sync.Mutex
	started bool
	stopped bool
	cancel  context.CancelFunc
	err     error // of the first Start
}

func newLifecycle() *lifecycle {
	return &lifecycle{synced: make(chan struct{}), ending: make(chan struct{})}
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
	context.AfterFunc(ctx, func() { close(l.ending) })
	l.mu.Unlock()
	defer l.cancel()
	l.keep(run(ctx))
	l.cancel()
	<-l.ending // a Start that follows finds the end
	return l.reason()
}

// follow does not wait for callbacks, as it may be called by one.
func (l *lifecycle) follow(ctx context.Context) error {
	if l.isEnding() {
		return cmp.Or(l.reason(), ErrStopped)
	}
	select {
	case <-l.ending:
	case <-ctx.Done():
	}
	if l.isEnding() { // both may be
		return l.reason()
	}
	return nil
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
		close(l.ending)
	}
	l.stopped = true
}

// fail ends a running watcher by an error.
func (l *lifecycle) fail(err error) {
	l.keep(err)
	l.cancel()
}

// keep keeps the first error of the watcher, unless it was stopped.
func (l *lifecycle) keep(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped && l.err == nil {
		l.err = err
	}
}

// reason is the error by which the watcher has ended; nil if it had none.
func (l *lifecycle) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lifecycle) isEnding() bool { return closed(l.ending) }

func (l *lifecycle) isSynced() bool { return closed(l.synced) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
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

// wait blocks until sync, the end of the context, or until the watcher is to end:
// it has not ended while a callback waits here. The error names the last watch
// error.
func (l *lifecycle) wait(ctx context.Context, what string, failures *failures) error {
	var cause error
	select {
	case <-l.synced:
	case <-l.ending:
		cause = cmp.Or(l.reason(), ErrStopped)
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
