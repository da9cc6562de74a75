package app

import (
	"net"
	"slices"
	"sync"
)

// evenListener bounds the connections that are open at a time, and shares them evenly between the addresses that they come from.
// Up to the bound all are taken. Beyond it, a new connection takes the place of the oldest one of the address that has most; or it
// is closed itself, if that is its own address. So a pod that opens connections without end takes none from the API server. A
// bound on accepting alone would let the API server wait behind them.
type evenListener struct {
	net.Listener
	most int
	// crowded is called for each connection that is closed because there are too many.
	crowded func()

	mu   sync.Mutex
	open map[string][]*evenConn // by address, the oldest first
	sum  int
}

// evenConn is a connection that counts until it is closed.
type evenConn struct {
	net.Conn
	from   string
	listen *evenListener
}

func newEvenListener(l net.Listener, most int, crowded func()) *evenListener {
	return &evenListener{Listener: l, most: most, crowded: crowded, open: map[string][]*evenConn{}}
}

// Accept returns the next connection that may be open.
func (l *evenListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &evenConn{Conn: conn, from: addressOf(conn), listen: l}
		closing := l.add(c)
		if closing != nil {
			l.crowded()
			_ = closing.Close()
		}
		if closing != c {
			return c, nil
		}
	}
}

// add counts a connection, and returns the one that has to be closed for it; nil if there is none.
func (l *evenListener) add(c *evenConn) (closing *evenConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum >= l.most {
		closing = l.excess(c)
		if closing == c {
			return c
		}
		l.drop(closing)
	}
	l.open[c.from] = append(l.open[c.from], c)
	l.sum++
	return closing
}

// excess returns the oldest connection of the address that has most, or the new one where its own address has no less. The caller
// holds the lock.
func (l *evenListener) excess(c *evenConn) *evenConn {
	largest := l.open[c.from]
	for _, of := range l.open {
		if len(of) > len(largest) {
			largest = of
		}
	}
	if len(largest) <= len(l.open[c.from])+1 {
		return c
	}
	return largest[0]
}

// drop counts a connection no longer. The caller holds the lock.
func (l *evenListener) drop(c *evenConn) {
	of := l.open[c.from]
	i := slices.Index(of, c)
	if i < 0 {
		return
	}
	l.sum--
	if len(of) == 1 {
		delete(l.open, c.from)
		return
	}
	l.open[c.from] = slices.Delete(of, i, i+1)
}

// Close closes the connection, which counts no longer.
func (c *evenConn) Close() error {
	c.listen.mu.Lock()
	c.listen.drop(c)
	c.listen.mu.Unlock()
	return c.Conn.Close()
}

// addressOf returns the address that a connection comes from, without the port.
func addressOf(conn net.Conn) string { return withoutPort(conn.RemoteAddr().String()) }

func withoutPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
