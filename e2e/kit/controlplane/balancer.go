package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

const (
	// pollInterval is how often a balancer asks its backends whether they are ready.
	pollInterval = 100 * time.Millisecond
	// steadyInterval is how often it asks a process that is ready and has had no news for as long as steadyAfter. An answer
	// costs such a program two milliseconds, and the one that asks almost as much.
	steadyInterval = 2 * time.Second
	steadyAfter    = 5 * time.Second
)

// Balancer plays kube-proxy for a Service: it spreads new TCP connections over the backends that
// are ready, in turn. As with the real one,
//
//   - a backend that stops being ready, or is removed, still gets new connections for the endpoint
//     delay, which is the time the news takes in a cluster;
//   - open connections stay where they are;
//   - where there is no backend, or the chosen one does not listen, the connection is refused.
type Balancer struct {
	port          int
	ports         ports
	relay         relay
	delay         atomic.Int64
	endpointDelay atomic.Int64
	ctx           context.Context // ends the polling
	cancel        context.CancelFunc
	polls         sync.WaitGroup

	mutex    sync.Mutex
	backends []*backend
	next     int
	listener net.Listener // nil while there is no ready backend
}

// backend is one endpoint of the Service.
type backend struct {
	name, address string
	ready         bool
	removed       bool
	accepted      atomic.Int64
	// until is when the news arrives that the backend is not ready or removed.
	until time.Time
	stop  context.CancelFunc
}

// NewBalancer reserves an address; Close gives it back. It ends with ctx, too.
func NewBalancer(ctx context.Context) (*Balancer, error) {
	b := &Balancer{}
	var err error
	if b.port, err = b.ports.take(); err != nil {
		return nil, fmt.Errorf("make a balancer: %w", err)
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.relay.delay = func() time.Duration { return time.Duration(b.delay.Load()) }
	b.polls.Go(func() { <-b.ctx.Done(); b.close() })
	return b, nil
}

// Addr is the host and port of the Service.
func (b *Balancer) Addr() string { return loopback(b.port) }

// SetDelay holds everything back for d in either direction, also on open connections.
func (b *Balancer) SetDelay(d time.Duration) { b.delay.Store(int64(d)) }

// SetEndpointDelay says how long a backend that is no longer ready, or removed, gets new
// connections. It starts at zero; a change holds for what happens after it.
func (b *Balancer) SetEndpointDelay(d time.Duration) { b.endpointDelay.Store(int64(d)) }

// AddBackend adds an endpoint by its host and port and asks it every 100 ms whether it is ready;
// nil means that it always is. [URLReady] makes such a question from an URL.
func (b *Balancer) AddBackend(name, address string, ready func(context.Context) error) {
	b.add(name, address, ready, nil)
}

// AddProcess is AddBackend for a process. While it stays ready it is asked every two seconds only, but at once when it gets
// a signal or ends, and every 100 ms for some time after.
func (b *Balancer) AddProcess(process *Process, address string, ready func(context.Context) error) {
	b.add(process.Name(), address, ready, process)
}

func (b *Balancer) add(name, address string, ready func(context.Context) error, process *Process) {
	if ready == nil {
		ready = func(context.Context) error { return nil }
	}
	ctx, stop := context.WithCancel(b.ctx)
	e := &backend{name: name, address: address, stop: stop}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.ctx.Err() != nil {
		return // closed
	}
	b.backends = append(b.backends, e)
	b.polls.Go(func() { b.poll(ctx, e, ready, process) })
}

// RemoveBackend takes an endpoint out, like the deletion of its pod does: after the endpoint delay
// it gets no new connections.
func (b *Balancer) RemoveBackend(name string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, e := range b.backends {
		if e.name == name && !e.removed {
			e.stop()
			e.removed = true
			if e.ready {
				b.retire(e)
			}
		}
	}
	b.settle()
}

// Ready names the backends that new connections go to.
func (b *Balancer) Ready() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.settle() // the listener agrees with the answer
	var names []string
	for _, e := range b.routable() {
		names = append(names, e.name)
	}
	return names
}

// Accepted is how many connections each backend was given, by its name.
func (b *Balancer) Accepted() map[string]int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	accepted := map[string]int{}
	for _, e := range b.backends {
		accepted[e.name] += int(e.accepted.Load())
	}
	return accepted
}

// AwaitReady waits until new connections go to exactly n backends.
func (b *Balancer) AwaitReady(ctx context.Context, n int) error {
	return await(ctx, fmt.Sprintf("%d ready backends", n), func(context.Context) error {
		if ready := b.Ready(); len(ready) != n {
			return fmt.Errorf("ready are %v", ready)
		}
		return nil
	})
}

// Break cuts every open connection, as when the node behind them is gone; new ones go to the backends that are ready.
func (b *Balancer) Break() { b.relay.cut() }

// Close refuses new connections, cuts the open ones and gives the address back.
func (b *Balancer) Close() error {
	b.cancel()
	b.polls.Wait()
	return b.ports.release()
}

func (b *Balancer) close() {
	b.mutex.Lock()
	for _, e := range b.backends {
		e.removed, e.ready, e.until = true, false, time.Time{}
	}
	b.settle()
	b.mutex.Unlock()
	b.relay.close()
}

// poll asks a backend until ctx ends. The process may be nil.
func (b *Balancer) poll(ctx context.Context, e *backend, ready func(context.Context) error, process *Process) {
	var news <-chan struct{}
	latest := time.Now()
	for {
		if process != nil {
			news = process.News() // what comes after the question leads to the next one
		}
		err := poll.Ask(ctx, askTimeout, ready)
		if ctx.Err() != nil {
			return
		}
		if !busy(process, err) {
			b.note(e, err == nil)
		}
		interval := pollInterval
		if process != nil && err == nil && time.Since(latest) > steadyAfter {
			interval = steadyInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
			latest = time.Now()
		case <-time.After(interval):
		}
	}
}

// busy reports whether a question was not answered although the process runs and is not frozen: the machine is too slow for it. That
// is no answer, and the backend stays what it was, as in a cluster, whose kubelet asks three times in half a minute.
func busy(process *Process, err error) bool {
	var late interface{ Timeout() bool }
	return process != nil && errors.As(err, &late) && late.Timeout() && process.runs()
}

// note takes the answer of a backend in.
func (b *Balancer) note(e *backend, ready bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if e.removed {
		return
	}
	was := e.ready
	e.ready = ready
	if was && !ready {
		b.retire(e)
	}
	b.settle()
}

// retire lets a backend be routable for the endpoint delay, and looks again when that is over.
func (b *Balancer) retire(e *backend) {
	delay := time.Duration(b.endpointDelay.Load())
	e.until = time.Now().Add(delay)
	time.AfterFunc(delay, func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.settle()
	})
}

func (e *backend) routable(now time.Time) bool {
	return e.ready && !e.removed || now.Before(e.until)
}

// routable are the backends that new connections go to. The caller holds the mutex.
func (b *Balancer) routable() []*backend {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(b.backends), func(e *backend) bool { return !e.routable(now) })
}

// settle listens only while there is a ready backend: the kernel refuses connections to a
// port without a listener. The caller holds the mutex.
func (b *Balancer) settle() {
	ready := len(b.routable()) > 0 && b.ctx.Err() == nil
	switch {
	case ready && b.listener == nil:
		listener, err := net.Listen("tcp4", b.Addr())
		if err != nil {
			return // the next poll tries again
		}
		b.listener = listener
		b.polls.Go(func() { b.accept(listener) })
	case !ready && b.listener != nil:
		_ = b.listener.Close()
		b.listener = nil
	}
}

func (b *Balancer) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		chosen := b.choose()
		if chosen == nil {
			reset(client)
			continue
		}
		chosen.accepted.Add(1)
		b.relay.serve(client, chosen.address)
	}
}

// choose picks the next backend in turn, nil when the last one just went.
func (b *Balancer) choose() *backend {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	routable := b.routable()
	if len(routable) == 0 {
		return nil
	}
	b.next++
	return routable[b.next%len(routable)]
}
