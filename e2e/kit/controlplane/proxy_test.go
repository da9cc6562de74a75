package controlplane_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// newEcho serves connections that say their name and then echo what they get.
func newEcho(t *testing.T, name string) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, name)
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return listener.Addr().String()
}

// dial connects and reads the name of the backend; an echo server has a name of one letter.
func dial(t *testing.T, address string) (net.Conn, string, error) {
	t.Helper()
	c, err := net.Dial("tcp4", address)
	if err != nil {
		return nil, "", err
	}
	t.Cleanup(func() { _ = c.Close() })
	name := make([]byte, 1)
	_, err = io.ReadFull(c, name)
	return c, string(name), err
}

func mustDial(t *testing.T, address string) (net.Conn, string) {
	t.Helper()
	c, name, err := dial(t, address)
	require.NoError(t, err)
	return c, name
}

// echo sends and expects the same back; it returns how long that took.
func echo(t *testing.T, c net.Conn, data []byte) time.Duration {
	t.Helper()
	begun := time.Now()
	go func() { _, _ = c.Write(data) }()
	back := make([]byte, len(data))
	_, err := io.ReadFull(c, back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, back), "bytes stay in order")
	return time.Since(begun)
}

// quick reports whether something took less than a limit in one of several attempts: a busy machine makes it last longer, never
// shorter.
func quick(limit time.Duration, attempt func() time.Duration) bool {
	for begun := time.Now(); time.Since(begun) < timeout; {
		if attempt() < limit {
			return true
		}
	}
	return false
}

func TestProxyHoldsBack(t *testing.T) {
	t.Parallel()
	proxy, err := controlplane.NewProxy(newEcho(t, "a"))
	require.NoError(t, err)
	c, _ := mustDial(t, proxy.Addr())
	large := make([]byte, 1<<20)
	_, _ = rand.Read(large)
	echo(t, c, large)

	proxy.SetDelay(50 * time.Millisecond)
	assert.True(t, quick(time.Second, func() time.Duration {
		took := echo(t, c, large)
		assert.GreaterOrEqual(t, took, 100*time.Millisecond, "there and back, on an open connection")
		return took
	}), "a latency, it does not add up over the chunks")

	proxy.SetDelay(0)
	assert.True(t, quick(100*time.Millisecond, func() time.Duration { return echo(t, c, large) }), "without a delay nothing is held back")

	proxy.Break()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "open connections are cut")
	c, _ = mustDial(t, proxy.Addr())

	require.NoError(t, proxy.Close())
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	_, _, err = dial(t, proxy.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestProxyPassesTheEndOfAStreamOn(t *testing.T) {
	t.Parallel()
	proxy, err := controlplane.NewProxy(newEcho(t, "a"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, proxy.Close()) }()
	proxy.SetDelay(10 * time.Millisecond)
	c, _ := mustDial(t, proxy.Addr())
	_, err = c.Write([]byte("last words"))
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "last words", string(rest))
}

func TestBalancerGoesByReadiness(t *testing.T) {
	t.Parallel()
	b := newBalancer(t)
	_, _, err := dial(t, b.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "there is no backend")

	var ready atomic.Bool
	b.AddBackend("first", newEcho(t, "1"), nil)
	b.AddBackend("second", newEcho(t, "2"), func(context.Context) error {
		if ready.Load() {
			return nil
		}
		return errors.New("not yet")
	})
	require.NoError(t, b.AwaitReady(t.Context(), 1))
	for range 4 {
		_, name := mustDial(t, b.Addr())
		assert.Equal(t, "1", name, "only who is ready gets connections")
	}
	ready.Store(true)
	require.NoError(t, b.AwaitReady(t.Context(), 2))
	for range 4 {
		mustDial(t, b.Addr())
	}
	assert.Equal(t, map[string]int{"first": 6, "second": 2}, b.Accepted(), "in turn")

	open, name := mustDial(t, b.Addr())
	ready.Store(false)
	b.RemoveBackend("first")
	require.NoError(t, b.AwaitReady(t.Context(), 0))
	requireNoConnection(t, b)
	echo(t, open, []byte("connections stay where they are: "+name))
}

// requireNoConnection requires that a balancer accepts no connection. One that is made while the balancer ends its listener is reset.
func requireNoConnection(t *testing.T, b *controlplane.Balancer) {
	t.Helper()
	_, _, err := dial(t, b.Addr())
	require.True(t, errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET), "%v", err)
}

func TestBalancerFollowsReadinessWithADelay(t *testing.T) {
	t.Parallel()
	const attempts = 10
	remove := func(b *controlplane.Balancer, _ *atomic.Bool) { b.RemoveBackend("only") }
	for name, leave := range map[string]func(*controlplane.Balancer, *atomic.Bool){
		"a backend that is removed":             remove,
		"a backend that is no longer ready":     func(_ *controlplane.Balancer, gone *atomic.Bool) { gone.Store(true) },
		"a backend that is removed, then fails": func(b *controlplane.Balancer, gone *atomic.Bool) { remove(b, nil); gone.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, poll.Repeat(t, attempts, "the news could have arrived before the connection",
				func(int) bool { return learnsLate(t, leave) }), "an attempt was conclusive")
		})
	}
}

// learnsLate reports whether a connection was made so early that the balancer could not know of the leave yet.
func learnsLate(t *testing.T, leave func(*controlplane.Balancer, *atomic.Bool)) bool {
	t.Helper()
	const delay = 500 * time.Millisecond
	b := newBalancer(t)
	b.SetEndpointDelay(delay)
	var gone atomic.Bool
	b.AddBackend("only", newEcho(t, "1"), func(context.Context) error {
		if gone.Load() {
			return errors.New("gone")
		}
		return nil
	})
	require.NoError(t, b.AwaitReady(t.Context(), 1))
	begun := time.Now()
	leave(b, &gone)
	_, _, err := dial(t, b.Addr())
	if time.Since(begun) >= delay {
		return false
	}
	require.NoError(t, err, "the news has not arrived")
	require.NoError(t, b.AwaitReady(t.Context(), 0))
	assert.GreaterOrEqual(t, time.Since(begun), delay)
	requireNoConnection(t, b)
	return true
}

// A process that stays ready is asked seldom, but at once when it ends.
func TestBalancerLearnsOfTheEndOfAProcess(t *testing.T) {
	t.Parallel()
	process, err := cp.StartProcess(t.Context(), controlplane.Program{Name: "balanced-" + rand.Text(), Path: "/bin/sleep", Args: []string{"1000"}})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	b := newBalancer(t)
	asked := make(chan time.Time, 1000)
	b.AddProcess(process, newEcho(t, "1"), func(context.Context) error {
		asked <- time.Now()
		if process.PID() == 0 {
			return errors.New("it has ended")
		}
		return nil
	})
	assert.NoError(t, poll.Steadily(t, func() error {
		require.NoError(t, b.AwaitReady(t.Context(), 1))
		awaitRare(asked)
		process.Kill()
		ended := time.Now()
		require.NoError(t, b.AwaitReady(t.Context(), 0))
		took := time.Since(ended)
		require.NoError(t, process.Start(t.Context()))
		if took >= time.Second {
			return fmt.Errorf("the balancer waited for its turn: %s", took)
		}
		return nil
	}))
}

// A process that is too slow to answer stays an endpoint, unless it is frozen.
func TestBalancerKeepsASlowProcess(t *testing.T) {
	t.Parallel()
	process, err := cp.StartProcess(t.Context(), controlplane.Program{Name: "slow-" + rand.Text(), Path: "/bin/sleep", Args: []string{"1000"}})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	b := newBalancer(t)
	var slow atomic.Bool
	asked := make(chan struct{})
	b.AddProcess(process, newEcho(t, "1"), func(ctx context.Context) error {
		if !slow.Load() {
			return nil
		}
		select {
		case asked <- struct{}{}:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, b.AwaitReady(t.Context(), 1))
	slow.Store(true)
	for range 3 { // the third is asked after the first two were not answered in time
		<-asked
	}
	assert.Equal(t, []string{process.Name()}, b.Ready())

	process.Freeze()
	require.NoError(t, b.AwaitReady(t.Context(), 0))
}

// awaitRare waits until there is more than a second between two questions.
func awaitRare(asked <-chan time.Time) {
	for last, now := <-asked, <-asked; now.Sub(last) <= time.Second; {
		last, now = now, <-asked
	}
}

func TestBalancerBeforeADeadBackend(t *testing.T) {
	t.Parallel()
	b := newBalancer(t)
	port, err := cp.FreePort()
	require.NoError(t, err)
	b.AddBackend("dead", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil)
	require.NoError(t, b.AwaitReady(t.Context(), 1))
	_, _, err = dial(t, b.Addr())
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestBalancerEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b, err := controlplane.NewBalancer(ctx)
	require.NoError(t, err)
	b.SetDelay(time.Millisecond)
	b.AddBackend("first", newEcho(t, "1"), nil)
	require.NoError(t, b.AwaitReady(t.Context(), 1))
	c, _ := mustDial(t, b.Addr())
	cancel()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "open connections are cut")
	require.NoError(t, b.Close())
	requireNoConnection(t, b)
	b.AddBackend("late", newEcho(t, "2"), nil)
	assert.Empty(t, b.Ready())
}

func newBalancer(t *testing.T) *controlplane.Balancer {
	t.Helper()
	b, err := controlplane.NewBalancer(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}
