package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a connection: bytes that were written and not read yet.
type half struct {
	mu   sync.Mutex
	wake *sync.Cond
	// data has what was written, of which the first bytes are read already. Its memory is used again.
	data []byte
	read int
	// closed ends the direction after what was written; err ends it at once.
	closed bool
	err    error
	// deadline of the reader; timer wakes it.
	expired bool
	timer   *time.Timer
}

func newHalf() *half {
	h := &half{}
	h.wake = sync.NewCond(&h.mu)
	return h
}

// keptCapacity is how much memory is kept for what will be written.
const keptCapacity = 64 << 10

func (h *half) take(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.err != nil:
			return 0, h.err
		case h.expired:
			return 0, os.ErrDeadlineExceeded
		case h.read < len(h.data):
			n := copy(p, h.data[h.read:])
			if h.read += n; h.read == len(h.data) {
				h.empty()
			}
			return n, nil
		case h.closed:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		h.wake.Wait()
	}
}

// empty forgets what was written.
func (h *half) empty() {
	h.read = 0
	if h.data = h.data[:0]; cap(h.data) > keptCapacity {
		h.data = nil
	}
}

// write never blocks: the network of the simulator takes everything.
func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, syscall.EPIPE
	}
	h.data = append(h.data, p...)
	h.wake.Broadcast()
	return len(p), nil
}

// end closes the direction. With an error the reader fails at once, without it the reader gets what was written before.
func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if err != nil && h.err == nil {
		h.err, h.data, h.read = err, nil, 0
	}
	if h.timer != nil {
		h.timer.Stop()
	}
	h.wake.Broadcast()
}

func (h *half) setDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.expired = false
	if t.IsZero() || h.closed {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		h.expired = true
		h.wake.Broadcast()
		return
	}
	h.timer = time.AfterFunc(wait, func() { h.expire(t) })
}

func (h *half) expire(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A later deadline may have been set while this timer was about to fire.
	if h.timer != nil && !time.Now().Before(t) {
		h.expired = true
		h.wake.Broadcast()
	}
}

// Conn is one end of a connection.
type Conn struct {
	in, out       *half
	local, remote addr
	once          sync.Once
	onClose       func()
}

var _ net.Conn = (*Conn)(nil)

// Read waits for bytes of the other end. It fails with ECONNRESET after Break.
func (c *Conn) Read(p []byte) (int, error) { return c.in.take(p) }

// Write hands bytes to the other end; it does not wait for the reader.
func (c *Conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close ends both directions; the other end reads what was written, then EOF.
func (c *Conn) Close() error {
	c.out.end(nil)
	c.in.end(net.ErrClosed)
	c.once.Do(c.onClose)
	return nil
}

// Break resets the connection: both ends fail at once.
func (c *Conn) Break() {
	c.in.end(syscall.ECONNRESET)
	c.out.end(syscall.ECONNRESET)
	c.once.Do(c.onClose)
}

// LocalAddr returns the name of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the name of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads; a write never waits.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline bounds reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: a write never waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

type addr string

func (a addr) Network() string { return "memory" }
func (a addr) String() string  { return string(a) }
