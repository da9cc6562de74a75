package serve

import (
	"net"
	"slices"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

// fairListener bounds the connections that are open at a time, and shares them evenly between the addresses that they come from.
// Up to the bound all are taken. Beyond it, a new connection takes the place of the oldest one of the address that has most; or it
// is closed itself, if that is its own address. So a pod that opens connections without end takes none from the API server. A
// bound on accepting alone would let the API server wait behind them.
//
// An address without a connection always gets one, also where each other address has only one: then the oldest of all is closed. Without
// that, as many pods as the bound, with one idle connection each, would keep out the probes of the kubelet, which would end the
// container. The price is that so many pods, if they connect again and again, also close connections of the API server, with the requests
// on them; it can connect again at once. The listener does not know which connections are idle.
type fairListener struct {
	net.Listener
	most int
	// onClosed is called for each connection that is closed because there are too many.
	onClosed func()

	mu   sync.Mutex
	open map[string][]*fairConn // by address, the oldest first
	sum  int
	// added counts the connections so far.
	added uint64
}

// fairConn is a connection that counts until it is closed.
type fairConn struct {
	net.Conn
	from   string
	listen *fairListener
	// order is higher for a later connection.
	order uint64
}

func newFairListener(l net.Listener, most int, onClosed func()) *fairListener {
	return &fairListener{Listener: l, most: most, onClosed: onClosed, open: map[string][]*fairConn{}}
}

// Accept returns the next connection that may be open.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &fairConn{Conn: conn, from: fairlimit.CallerOf(conn.RemoteAddr().String()), listen: l}
		closing := l.add(c)
		if closing != nil {
			l.onClosed()
			_ = closing.Close()
		}
		if closing != c {
			return c, nil
		}
	}
}

// add counts a connection, and returns the one that has to be closed for it; nil if there is none.
func (l *fairListener) add(c *fairConn) (closing *fairConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum >= l.most {
		closing = l.excess(c)
		if closing == c {
			return c
		}
		l.drop(closing)
	}
	l.added++
	c.order = l.added
	l.open[c.from] = append(l.open[c.from], c)
	l.sum++
	return closing
}

// excess returns the oldest connection of the addresses that have most; or the new one, if its own address has another one already and
// would have as many as any. The caller holds the lock.
func (l *fairListener) excess(c *fairConn) *fairConn {
	most, oldest := 0, c
	for _, of := range l.open {
		if len(of) > most || len(of) == most && of[0].order < oldest.order {
			most, oldest = len(of), of[0]
		}
	}
	if own := len(l.open[c.from]); own > 0 && most <= own+1 {
		return c
	}
	return oldest
}

// drop counts a connection no longer. The caller holds the lock.
func (l *fairListener) drop(c *fairConn) {
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
func (c *fairConn) Close() error {
	c.listen.mu.Lock()
	c.listen.drop(c)
	c.listen.mu.Unlock()
	return c.Conn.Close()
}
