// Package share lets callers that read the same object at the same time share one read, without ever returning a result
// that is older than the call.
//
// The live reads of configstate use it: callers at the same time share a read only if it began after their calls.
// golang.org/x/sync/singleflight would join a read that is under way, whose answer may be from before the call.
package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

// ErrWaiting is in the error of a caller whose context ended before its read was admitted.
var ErrWaiting = errors.New("the read was still queued behind other reads")

// Group runs reads, of each key at most one at a time, and at most one more that waits for it to end. The zero value
// with a Limit is ready for use.
type Group[K comparable, V any] struct {
	// Limit bounds one read, in time; it keeps a stuck one from holding up those behind it. 0 is no limit.
	Limit time.Duration
	// Admit waits until a read of the key may begin; its error ends the read. Callers who come meanwhile share the read,
	// which has not begun. nil admits at once.
	Admit func(ctx context.Context, key K) (release func(), err error)

	mu     sync.Mutex
	lanes  map[K]*lane[V]
	joined atomic.Uint64
}

// lane is the traffic of one key, which one goroutine serves: its present read, and the next one, which callers can still
// join.
type lane[V any] struct {
	next *call[V]
}

// call is one read and those who wait for it.
type call[V any] struct {
	read    func(context.Context) (V, error)
	ctx     context.Context //nolint:containedctx // it is the read's own: it ends with the last of the waiters
	cancel  context.CancelFunc
	waiters int
	begun   bool
	done    chan struct{}
	value   V
	err     error
}

// Joined counts the calls that were answered by a read that another caller had asked for.
func (g *Group[K, V]) Joined() uint64 {
	return g.joined.Load()
}

// Do returns what a read of key returns that began after Do was called. If a read of that key is under way, the
// caller waits for it to end and shares the following one with all who wait with it. The read goes on as long as
// a caller waits for it: a caller whose context ends leaves, and the read's context ends with the last one. All reads
// of a key must be alike, whichever caller passes them.
func (g *Group[K, V]) Do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c := g.join(ctx, key, read)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		if begun := g.leave(key, c); !begun {
			return none, fmt.Errorf("%w: %w", ErrWaiting, ctx.Err())
		}
		return none, ctx.Err()
	}
}

// join makes the caller wait for a read that has not begun.
func (g *Group[K, V]) join(ctx context.Context, key K, read func(context.Context) (V, error)) *call[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes == nil {
		g.lanes = make(map[K]*lane[V])
	}
	l, busy := g.lanes[key]
	if !busy {
		l = &lane[V]{}
		g.lanes[key] = l
		go g.serve(key, l)
	}
	if l.next == nil {
		l.next = newCall(ctx, read)
	} else {
		g.joined.Add(1)
	}
	l.next.waiters++
	return l.next
}

func newCall[V any](ctx context.Context, read func(context.Context) (V, error)) *call[V] {
	c := &call[V]{read: read, done: make(chan struct{})}
	// Values (trace, logger) are the first caller's; the end is no single caller's.
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // run calls it, and leave does
	return c
}

// serve makes the reads of a key, one after the other, until nothing is wanted of it.
func (g *Group[K, V]) serve(key K, l *lane[V]) {
	for {
		g.mu.Lock()
		c := l.next
		if c == nil {
			delete(g.lanes, key)
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		g.run(key, l, c)
	}
}

// run waits for the admission of a call, and makes its read.
func (g *Group[K, V]) run(key K, l *lane[V], c *call[V]) {
	defer close(c.done)
	defer c.cancel()
	release, err := g.admit(c.ctx, key)
	g.mu.Lock()
	if l.next == c {
		l.next = nil
	}
	c.begun = err == nil
	g.mu.Unlock()
	if err != nil {
		c.err = err
		return
	}
	defer release()
	ctx := c.ctx
	if g.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, g.Limit)
		defer cancel()
		ctx = limited
	}
	c.err = recovering.Func(func() (err error) {
		c.value, err = c.read(ctx)
		return err
	})()
}

func (g *Group[K, V]) admit(ctx context.Context, key K) (release func(), err error) {
	if g.Admit == nil {
		return func() {}, ctx.Err()
	}
	return g.Admit(ctx, key)
}

// leave removes one waiter, and reports whether the read has begun; with the last one the read is canceled.
func (g *Group[K, V]) leave(key K, c *call[V]) (begun bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiters--; c.waiters > 0 {
		return c.begun
	}
	c.cancel()
	if l := g.lanes[key]; l != nil && l.next == c {
		l.next = nil // it has not begun, and no caller wants it any more
	}
	return c.begun
}
