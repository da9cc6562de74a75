// Package share lets callers who want the same thing at the same time wait for one read of it, without ever handing
// somebody a result that is older than the question.
//
// It stands under the live reads of configstate: callers at the same time share a read only if it began after they asked.
// golang.org/x/sync/singleflight would join a read that is under way, whose answer may be from before the call.
package share

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Group runs reads, of each key at most one at a time, and at most one more that waits for it to end. The zero value
// with a Limit is ready for use.
type Group[K comparable, V any] struct {
	// Limit bounds one read, in time; it keeps a stuck one from holding up those behind it. 0 is no limit.
	Limit time.Duration

	mu     sync.Mutex
	lanes  map[K]*lane[V]
	joined atomic.Uint64
}

// lane is the traffic of one key: one read that runs, one that is next.
type lane[V any] struct {
	running, next *call[V]
}

// call is one read and those who wait for it.
type call[V any] struct {
	read    func(context.Context) (V, error)
	ctx     context.Context //nolint:containedctx // it is the read's own: it ends with the last of the waiters
	cancel  context.CancelFunc
	waiters int
	done    chan struct{}
	value   V
	err     error
}

// Joined counts the calls that were answered by a read somebody else had asked for.
func (g *Group[K, V]) Joined() uint64 {
	return g.joined.Load()
}

// Do returns what a read of key returns that began after Do was called. If a read of that key is under way, the
// caller waits for it to end and shares the following one with all who wait with it. The read goes on as long as
// anybody waits for it: a caller whose context ends leaves, and the read's context ends with the last one. All reads
// of a key must be alike, whoever passes them.
func (g *Group[K, V]) Do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if err := ctx.Err(); err != nil {
		var none V
		return none, err
	}
	c := g.join(ctx, key, read)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		g.leave(key, c)
		var none V
		return none, ctx.Err()
	}
}

// join makes the caller wait for a read that has not begun, and begins it when nothing is in its way.
func (g *Group[K, V]) join(ctx context.Context, key K, read func(context.Context) (V, error)) *call[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes == nil {
		g.lanes = make(map[K]*lane[V])
	}
	l, busy := g.lanes[key]
	switch {
	case !busy:
		l = &lane[V]{running: g.newCall(ctx, read)}
		g.lanes[key] = l
		l.running.waiters++
		go g.run(key, l.running) //nolint:contextcheck // the read has its own context, which no single caller ends
		return l.running
	case l.next == nil:
		l.next = g.newCall(ctx, read)
	default:
		g.joined.Add(1)
	}
	l.next.waiters++
	return l.next
}

func (g *Group[K, V]) newCall(ctx context.Context, read func(context.Context) (V, error)) *call[V] {
	c := &call[V]{read: read, done: make(chan struct{})}
	// Values (trace, logger) are the first caller's; the end is nobody's in particular.
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // run calls it, and leave does
	return c
}

// run reads and then starts what has queued up meanwhile.
func (g *Group[K, V]) run(key K, c *call[V]) {
	defer func() {
		if r := recover(); r != nil {
			// Nobody's stack is above this one: a panic would end the process, and with it somebody's write.
			c.err = fmt.Errorf("panic during a shared read: %v", r)
		}
		c.cancel()
		close(c.done)
		g.advance(key)
	}()
	ctx := c.ctx
	if g.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, g.Limit)
		defer cancel()
		ctx = limited
	}
	c.value, c.err = c.read(ctx)
}

func (g *Group[K, V]) advance(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	l.running, l.next = l.next, nil
	if l.running == nil {
		delete(g.lanes, key)
		return
	}
	go g.run(key, l.running)
}

// leave takes one waiter away; with the last one the read is called off.
func (g *Group[K, V]) leave(key K, c *call[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiters--; c.waiters > 0 {
		return
	}
	c.cancel()
	if l := g.lanes[key]; l != nil && l.next == c {
		l.next = nil // it has not begun, and nobody wants it any more
	}
}
