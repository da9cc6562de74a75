package serve

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// arrivals are a listener with connections that wait for it, and no others.
type arrivals struct{ waiting []*arriving }

func (a *arrivals) Accept() (net.Conn, error) {
	if len(a.waiting) == 0 {
		return nil, net.ErrClosed
	}
	next := a.waiting[0]
	a.waiting = a.waiting[1:]
	return next, nil
}

func (*arrivals) Close() error   { return nil }
func (*arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// arriving is a connection from an address.
type arriving struct {
	net.Conn
	from   string
	closed bool
}

func (a *arriving) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.from), Port: 1234} }

func (a *arriving) Close() error {
	a.closed = true
	return nil
}

// arrive makes a listener accept a connection from each address in turn.
func arrive(t *testing.T, l *fairListener, from ...string) (all []*arriving, accepted []net.Conn) {
	t.Helper()
	for _, address := range from {
		all = append(all, &arriving{from: address})
	}
	l.Listener = &arrivals{all}
	for {
		conn, err := l.Accept()
		if err != nil {
			require.ErrorIs(t, err, net.ErrClosed)
			return all, accepted
		}
		accepted = append(accepted, conn)
	}
}

// open counts the connections that are open, by address.
func open(all []*arriving) map[string]int {
	count := map[string]int{}
	for _, a := range all {
		if !a.closed {
			count[a.from]++
		}
	}
	return count
}

func many(n int, from string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = from
	}
	return all
}

// each is one connection from each of so many addresses.
func each(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.1.%d", i+1)
	}
	return all
}

func TestConnectionsAreSharedEvenly(t *testing.T) {
	t.Parallel()
	const a, b, c = "10.0.0.1", "10.0.0.2", "10.0.0.3"
	tests := map[string]struct {
		from []string
		want map[string]int
		why  string
	}{
		"one address":              {many(30, a), map[string]int{a: 9}, "it may have all"},
		"a flood, then another":    {append(many(30, a), b, b), map[string]int{a: 7, b: 2}, "the other takes its place from the flood"},
		"another, then a flood":    {append([]string{b, b}, many(30, a)...), map[string]int{a: 7, b: 2}, "a flood takes nothing"},
		"two floods, then another": {append(append(many(30, a), many(30, b)...), c), map[string]int{a: 4, b: 4, c: 1}, "from the one that has most"},
		"three floods":             {append(append(many(30, a), many(30, b)...), many(30, c)...), map[string]int{a: 3, b: 3, c: 3}, "an even share"},
		"fewer than there may be":  {[]string{a, b, a}, map[string]int{a: 2, b: 1}, "no bound"},
		"one each, then another": {
			append(each(9), a), map[string]int{
				"10.0.1.2": 1, "10.0.1.3": 1, "10.0.1.4": 1, "10.0.1.5": 1, "10.0.1.6": 1, "10.0.1.7": 1,
				"10.0.1.8": 1, "10.0.1.9": 1, a: 1,
			}, "an address without a connection gets one: the oldest of the others is closed",
		},
		"one each, then a flood": {
			append(each(9), many(30, a)...), map[string]int{
				"10.0.1.2": 1, "10.0.1.3": 1, "10.0.1.4": 1, "10.0.1.5": 1, "10.0.1.6": 1,
				"10.0.1.7": 1, "10.0.1.8": 1, "10.0.1.9": 1, a: 1,
			}, "it gets no second one",
		},
		"two floods of the same size, then another": {
			append(append(many(3, a), append(many(4, b), a)...), "10.0.1.1", c),
			map[string]int{a: 3, b: 4, c: 1, "10.0.1.1": 1},
			"the oldest of both",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := 0
			all, _ := arrive(t, newFairListener(nil, 9, func() { closed++ }), tt.from...)
			assert.Equal(t, tt.want, open(all), tt.why)
			assert.Equal(t, max(0, len(tt.from)-9), closed, "each is counted")
		})
	}
}

func TestClosedConnectionsDoNotCount(t *testing.T) {
	t.Parallel()
	l := newFairListener(nil, 4, func() {})
	for i := range 10 {
		all, accepted := arrive(t, l, many(3, fmt.Sprintf("10.0.0.%d", i))...)
		assert.Len(t, accepted, 3)
		for _, conn := range accepted {
			require.NoError(t, conn.Close())
			require.NoError(t, conn.Close(), "more than once is once")
		}
		assert.Empty(t, open(all))
	}
	assert.Empty(t, l.open, "nothing is kept of an address without connections")
	assert.Zero(t, l.sum)
}
