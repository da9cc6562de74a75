// Package fairlimit bounds how much work is in flight, and shares it fairly between tenants.
//
// The live reads of configstate and the reviews of the webhook pass through it, with the namespace as the tenant, and the
// bodies that the webhook reads, with the caller's address. It imports nothing of this project and knows nothing about what the work is.
package fairlimit

import (
	"container/list"
	"context"
	"errors"
	"math"
	"net"
	"sync"
)

// ErrFull says that as much of a tenant's work waits as may. Under TryAcquire, none may.
var ErrFull = errors.New("the queue is full")

// Limit admits work up to a total weight. Where more is waiting than fits, the tenants take turns: one piece of work of
// each, so that a tenant with thousands of pieces delays another one by one piece only. Within a tenant the order is that
// of arrival. One tenant never has all of the total, so that work of one tenant that hangs holds up no other; that of several
// tenants can have all, until it ends. A Limit is safe for concurrent use.
type Limit struct {
	total, share int
	// queue is how many pieces of work of one tenant may wait, backlog their weight.
	queue, backlog int

	mu      sync.Mutex
	used    int
	tenants map[string]*tenant
	// turns has the tenants whose next piece fits into their share, in the order of their turns.
	turns list.List
}

// tenant has work in flight or waiting.
type tenant struct {
	used    int
	waiting list.List // of *piece
	backlog int       // the weight of what waits
	// turn is the element in Limit.turns; nil while nothing waits, or while the share is used up.
	turn *list.Element
}

// piece is work that waits.
type piece struct {
	weight  int
	granted chan struct{}
}

// New returns a Limit with a total weight in flight, of which one tenant can have a share.
func New(total, share int) *Limit {
	return &Limit{
		total: total, share: min(share, total), queue: math.MaxInt, backlog: math.MaxInt, tenants: make(map[string]*tenant),
	}
}

// NewBounded returns a Limit under which only so many pieces of work of one tenant wait.
func NewBounded(total, share, queue int) *Limit {
	l := New(total, share)
	l.queue = queue
	return l
}

// NewWeighted returns a Limit under which only work of so much weight of one tenant waits. One piece may wait whatever its weight.
func NewWeighted(total, share, backlog int) *Limit {
	l := New(total, share)
	l.backlog = backlog
	return l
}

// CallerOf returns the tenant of requests from an address: the address without the port.
func CallerOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Acquire waits until work of this weight may begin, or until the context ends: then the work leaves the queue, and the
// error is the context's; or it is ErrFull, at once. Work that is heavier than a share counts as a share. The caller calls release once, when the
// work is done.
func (l *Limit) Acquire(ctx context.Context, name string, weight int) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weight = min(weight, l.share)
	release = func() { l.release(name, weight) }
	waiting, element, err := l.enter(name, weight)
	if err != nil {
		return nil, err
	}
	if waiting == nil {
		return release, nil
	}
	select {
	case <-waiting.granted:
		if err := ctx.Err(); err != nil { // whichever came first
			release()
			return nil, err
		}
		return release, nil
	case <-ctx.Done():
		l.leave(name, waiting, element)
		return nil, ctx.Err()
	}
}

// TryAcquire is Acquire for work that does not wait: the error is ErrFull where it would have to.
func (l *Limit) TryAcquire(name string, weight int) (release func(), err error) {
	weight = min(weight, l.share)
	waiting, element, err := l.enter(name, weight)
	if waiting != nil {
		l.leave(name, waiting, element)
		err = ErrFull
	}
	if err != nil {
		return nil, err
	}
	return func() { l.release(name, weight) }, nil
}

// Waiting returns how many pieces of work wait.
func (l *Limit) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.tenants {
		n += t.waiting.Len()
	}
	return n
}

// enter begins work at once where nothing is in its way, and returns nil; otherwise it queues the work.
func (l *Limit) enter(name string, weight int) (*piece, *list.Element, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.tenants[name]
	if !known {
		t = &tenant{}
		l.tenants[name] = t
	}
	if l.turns.Len() == 0 && t.waiting.Len() == 0 && t.used+weight <= l.share && l.used+weight <= l.total {
		t.used += weight
		l.used += weight
		return nil, nil, nil
	}
	if t.waiting.Len() >= l.queue || t.waiting.Len() > 0 && t.backlog+weight > l.backlog {
		l.forget(name, t)
		return nil, nil, ErrFull
	}
	p := &piece{weight: weight, granted: make(chan struct{})}
	element := t.waiting.PushBack(p)
	t.backlog += weight
	l.settle(t)
	return p, element, nil
}

// release ends work, and begins what fits now.
func (l *Limit) release(name string, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[name]
	t.used -= weight
	l.used -= weight
	l.settle(t)
	l.grant()
	l.forget(name, t)
}

// leave takes work out of the queue whose caller has gone. It may have been granted at the same time.
func (l *Limit) leave(name string, p *piece, element *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[name]
	select {
	case <-p.granted:
		t.used -= p.weight
		l.used -= p.weight
	default:
		t.waiting.Remove(element)
		t.backlog -= p.weight
	}
	l.settle(t)
	l.grant()
	l.forget(name, t)
}

// grant begins work in the order of the turns. The next one in turn is waited for even where a lighter one would fit:
// otherwise heavy work could wait for ever.
func (l *Limit) grant() {
	for l.turns.Len() > 0 {
		t := l.turns.Front().Value.(*tenant)
		front := t.waiting.Front()
		p := front.Value.(*piece)
		if l.used+p.weight > l.total {
			return
		}
		t.waiting.Remove(front)
		t.backlog -= p.weight
		t.used += p.weight
		l.used += p.weight
		close(p.granted)
		l.turns.Remove(t.turn)
		t.turn = nil
		l.settle(t)
	}
}

// settle gives a tenant the last turn where its next piece of work fits into its share, or takes its turn away where it
// does not. A turn that it has stays where it is.
func (l *Limit) settle(t *tenant) {
	next := t.waiting.Front()
	fits := next != nil && t.used+next.Value.(*piece).weight <= l.share
	switch {
	case fits && t.turn == nil:
		t.turn = l.turns.PushBack(t)
	case !fits && t.turn != nil:
		l.turns.Remove(t.turn)
		t.turn = nil
	}
}

func (l *Limit) forget(name string, t *tenant) {
	if t.used == 0 && t.waiting.Len() == 0 {
		delete(l.tenants, name)
	}
}
