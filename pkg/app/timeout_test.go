package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipes is a listener that connects within the process, so that time can be fake.
type pipes struct {
	net.Listener
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return p.Listener.Close()
}

// connect serves with a handler until the test ends and connects to it.
func connect(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	s, err := listen(net.Listen, "test", "127.0.0.1:0", handler, logr.Discard())
	require.NoError(t, err)
	p := &pipes{s.listener, make(chan net.Conn), make(chan struct{})}
	s.listener = p
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	here, there := net.Pipe()
	p.accepted <- there
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Hour)))
	t.Cleanup(func() {
		_ = here.Close()
		cancel()
		assert.NoError(t, <-ended)
	})
	return here
}

func TestCallersAreNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"a header that does not end": "POST / HTTP/1.1\r\n",
		"a body that does not come":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				conn := connect(t, func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.ReadAll(r.Body)
					assert.Error(t, err, "the handler is told")
				})
				_, err := io.WriteString(conn, request)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, conn)
				require.NoError(t, err, "the connection is closed")
				assert.LessOrEqual(t, time.Since(began), 11*time.Second)
			})
		})
	}
}

func TestAnAnswerThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 1)
		conn := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			wrote <- err
		})
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		began := time.Now()
		select {
		case err := <-wrote:
			require.Error(t, err, "it is given up")
		case <-time.After(time.Hour):
			require.Fail(t, "the handler is held for ever")
		}
		assert.LessOrEqual(t, time.Since(began), 15*time.Second)
	})
}

// A request that comes as late as may be is answered, however long its decision takes.
func TestThereIsTimeToDecide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := connect(t, func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			time.Sleep(3 * time.Second) //nolint:forbidigo // the time is fake; manifests give the webhook no longer
			w.WriteHeader(http.StatusNoContent)
		})
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
		require.NoError(t, err)
		time.Sleep(9 * time.Second) //nolint:forbidigo // the time is fake
		_, err = io.WriteString(conn, "1")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusNoContent, response.StatusCode)
	})
}
