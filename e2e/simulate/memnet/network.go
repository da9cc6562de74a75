// Package memnet is the simulator's network: connections in memory between named hosts. It uses no sockets, so that fake
// time goes on, and a host can be cut off as a whole.
//
// Reads block on a sync.Cond, which testing/synctest counts as idle; writes never block.
package memnet

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Network connects hosts. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	conns     map[string][]*Conn // by the name of the host that dialed, and of the host that was dialed
	down      map[string]bool
	// refused says of which hosts another host refuses connections.
	refused map[string]func(from string) bool
}

// New returns a network without hosts.
func New() *Network {
	return &Network{
		listeners: map[string]*Listener{}, conns: map[string][]*Conn{}, down: map[string]bool{}, refused: map[string]func(string) bool{},
	}
}

// Listen binds an address of a host, e.g. host "replica-0", address ":9443".
func (n *Network) Listen(host, address string) (*Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	at := net.JoinHostPort(host, port)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil {
		return nil, fmt.Errorf("listen on %s: %w", at, syscall.EADDRINUSE)
	}
	l := newListener(n, at)
	n.listeners[at] = l
	return l, nil
}

// Dial connects host from with an address HOST:PORT. It fails at once with ECONNREFUSED where nothing listens, one of the
// two hosts is down, or the other one refuses.
func (n *Network) Dial(ctx context.Context, from, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[address]
	if refuses := n.refused[host]; l == nil || n.down[from] || n.down[host] || refuses != nil && refuses(from) {
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	forth, back := newHalf(), newHalf()
	client := &Conn{in: back, out: forth, local: addr(from), remote: addr(address)}
	server := &Conn{in: forth, out: back, local: addr(address), remote: addr(from)}
	client.onClose = func() { n.forget(client, from, host) }
	server.onClose = func() {}
	n.conns[from] = append(n.conns[from], client)
	if host != from {
		n.conns[host] = append(n.conns[host], client)
	}
	l.push(server)
	return client, nil
}

func (n *Network) forget(c *Conn, hosts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, host := range hosts {
		n.conns[host] = slices.DeleteFunc(n.conns[host], func(other *Conn) bool { return other == c })
	}
}

// Down cuts a host off: its connections break, and no connection with it can be opened.
func (n *Network) Down(host string) {
	n.mu.Lock()
	n.down[host] = true
	conns := slices.Clone(n.conns[host])
	n.mu.Unlock()
	for _, c := range conns {
		c.Break()
	}
}

// Refuse has a host refuse connections of some hosts, and breaks those that there are, as while its process starts again. It holds until
// Accept is called for the host.
func (n *Network) Refuse(host string, from func(string) bool) {
	n.mu.Lock()
	n.refused[host] = from
	conns := slices.Clone(n.conns[host])
	n.mu.Unlock()
	for _, c := range conns {
		if from(string(c.local)) {
			c.Break()
		}
	}
}

// Accept ends what Refuse began.
func (n *Network) Accept(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.refused, host)
}

// CloseHost closes the listeners of a host, as the end of its process does.
func (n *Network) CloseHost(host string) {
	n.mu.Lock()
	var closing []*Listener
	for at, l := range n.listeners {
		if strings.HasPrefix(at, host+":") {
			closing = append(closing, l)
		}
	}
	n.mu.Unlock()
	for _, l := range closing {
		_ = l.Close()
	}
}

// Listener accepts connections.
type Listener struct {
	network *Network
	at      string

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []net.Conn
	closed bool
}

var _ net.Listener = (*Listener)(nil)

func newListener(n *Network, at string) *Listener {
	l := &Listener{network: n, at: at}
	l.wake = sync.NewCond(&l.mu)
	return l
}

func (l *Listener) push(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, c)
	l.wake.Broadcast()
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.wake.Wait()
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

// Close frees the address. Connections that were not accepted break.
func (l *Listener) Close() error {
	l.network.mu.Lock()
	if l.network.listeners[l.at] == l {
		delete(l.network.listeners, l.at)
	}
	l.network.mu.Unlock()
	l.mu.Lock()
	l.closed = true
	waiting := l.queue
	l.queue = nil
	l.wake.Broadcast()
	l.mu.Unlock()
	for _, c := range waiting {
		_ = c.Close()
	}
	return nil
}

// Addr returns HOST:PORT.
func (l *Listener) Addr() net.Addr { return addr(l.at) }
