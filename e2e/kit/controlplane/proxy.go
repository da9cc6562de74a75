package controlplane

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Proxy relays TCP connections on loopback to one address and can hold everything back for a while:
// give a client its Addr as Host and set a delay, and the API server is far away for that client.
type Proxy struct {
	listener net.Listener
	relay    relay
	target   string
	delay    atomic.Int64
}

// NewProxy listens on a port of its own until Close and relays to target, a host and port.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target}
	p.relay.delay = p.Delay
	go p.accept()
	return p, nil
}

// Addr is the host and port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Delay is how long everything is held back, in either direction.
func (p *Proxy) Delay() time.Duration { return time.Duration(p.delay.Load()) }

// SetDelay changes the delay, also of connections that are open. Bytes stay in order.
func (p *Proxy) SetDelay(d time.Duration) { p.delay.Store(int64(d)) }

// Break cuts every open connection; new ones are accepted.
func (p *Proxy) Break() { p.relay.cut() }

// Close stops listening and cuts every open connection.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.relay.close()
	if err != nil {
		return fmt.Errorf("close a proxy: %w", err)
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.relay.serve(client, p.target)
	}
}
