package controlplane

import (
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = 30 * time.Second
	chunkSize   = 32 << 10
	// inFlight is how many chunks may be held back per direction before reading pauses.
	inFlight = 1024
)

// relay carries bytes between pairs of connections, each chunk no earlier than delay() after it
// came: a latency, not a bandwidth.
type relay struct {
	delay func() time.Duration

	mutex  sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	serial sync.WaitGroup
}

// serve connects a client to an address and relays until both sides are done. A client that cannot
// be connected is reset.
func (r *relay) serve(client net.Conn, address string) {
	if !r.add(client) {
		reset(client)
		return
	}
	go func() {
		defer r.serial.Done()
		defer r.drop(client)
		server, err := net.DialTimeout("tcp4", address, dialTimeout)
		if err != nil {
			reset(client)
			return
		}
		if !r.track(server) {
			return
		}
		defer r.drop(server)
		var both sync.WaitGroup
		both.Go(func() { r.carry(server, client) })
		both.Go(func() { r.carry(client, server) })
		both.Wait()
	}()
}

// carry copies from one connection to the other until the end of the stream, which it passes on.
func (r *relay) carry(to, from net.Conn) {
	line := &delayLine{to: to}
	defer line.finish()
	buffer := make([]byte, chunkSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !line.send(buffer[:n], r.delay()) {
			_ = from.Close() // it has no receiver any more
			return
		}
		if err != nil {
			return
		}
	}
}

// delayLine writes chunks when they are due, in order. Without delay it writes at once.
type delayLine struct {
	to      net.Conn
	chunks  chan chunk
	drained sync.WaitGroup
}

type chunk struct {
	due  time.Time
	data []byte
}

func (l *delayLine) send(data []byte, delay time.Duration) bool {
	if l.chunks == nil {
		if delay == 0 {
			_, err := l.to.Write(data)
			return err == nil
		}
		// From the first delay on, a goroutine of its own keeps the order.
		l.chunks = make(chan chunk, inFlight)
		l.drained.Go(l.drain)
	}
	l.chunks <- chunk{due: time.Now().Add(delay), data: append([]byte(nil), data...)}
	return true
}

func (l *delayLine) drain() {
	broken := false
	for c := range l.chunks {
		if broken {
			continue
		}
		<-time.After(time.Until(c.due))
		_, err := l.to.Write(c.data)
		broken = err != nil
	}
}

// finish waits until everything is written and passes the end of the stream on.
func (l *delayLine) finish() {
	if l.chunks != nil {
		close(l.chunks)
		l.drained.Wait()
	}
	if half, ok := l.to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func (r *relay) add(c net.Conn) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return false
	}
	r.serial.Add(1)
	r.remember(c)
	return true
}

func (r *relay) track(c net.Conn) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.remember(c)
	return true
}

func (r *relay) remember(c net.Conn) {
	if r.open == nil {
		r.open = map[net.Conn]struct{}{}
	}
	r.open[c] = struct{}{}
}

func (r *relay) drop(c net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.open, c)
	_ = c.Close()
}

// cut closes every open connection.
func (r *relay) cut() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for c := range r.open {
		_ = c.Close()
	}
}

// close cuts, accepts no connection any more and waits until no goroutine is left.
func (r *relay) close() {
	r.mutex.Lock()
	r.closed = true
	r.mutex.Unlock()
	r.cut()
	r.serial.Wait()
}

// reset ends a connection like a port without a listener.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
