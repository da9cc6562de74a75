package serve

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// pipes is a listener that connects within the process, so that time can be fake.
type pipes struct {
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
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// slowServers are the servers with callers that may be slow.
var slowServers = map[string]func(t *testing.T, handler http.Handler) *http.Server{
	"admission": func(t *testing.T, handler http.Handler) *http.Server {
		t.Helper()
		a, err := NewAdmission(options.Webhook{Address: ":1"}, NewFileCertificate("", options.Certificate{}, logr.Discard()), WithDeadlines(handler))
		require.NoError(t, err)
		return a.server()
	},
	"probes": func(t *testing.T, handler http.Handler) *http.Server {
		t.Helper()
		s, err := Listen(net.Listen, "probes", "127.0.0.1:0", handler, nil)
		require.NoError(t, err)
		require.NoError(t, s.Listener.Close())
		return s.Server
	},
}

// connect serves until the test ends and connects to it.
func connect(t *testing.T, s *http.Server) net.Conn {
	t.Helper()
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(p) }()
	here, there := net.Pipe()
	p.accepted <- there
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Hour)))
	t.Cleanup(func() {
		_ = here.Close()
		assert.NoError(t, s.Shutdown(context.WithoutCancel(t.Context())))
		assert.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return here
}

// awaitClosed requires that the server closes a connection within some seconds.
func awaitClosed(t *testing.T, conn net.Conn, within time.Duration) {
	t.Helper()
	began := time.Now()
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err, "the connection is closed")
	assert.LessOrEqual(t, time.Since(began), within)
}

func TestBodyThatDoesNotComeEndsTheConnection(t *testing.T) {
	t.Parallel()
	for name, server := range slowServers {
		for _, path := range []string{webhook.Path, "/other"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					conn := connect(t, server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, err := io.ReadAll(r.Body)
						assert.Error(t, err, "the handler gets an error")
					})))
					_, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
					require.NoError(t, err)
					awaitClosed(t, conn, 11*time.Second)
				})
			})
		}
	}
}

func TestHeaderThatDoesNotEndEndsTheConnection(t *testing.T) {
	t.Parallel()
	for name, server := range slowServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := connect(t, server(t, noContent))
				_, err := io.WriteString(conn, "POST / HTTP/1.1\r\n")
				require.NoError(t, err)
				awaitClosed(t, conn, 11*time.Second)
			})
		})
	}
}

// On HTTP/2 a request has deadlines of its own, and the connection lives on.
func TestBodyThatDoesNotComeEndsItsRequestOnHTTP2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		s := slowServers["admission"](t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			assert.Equal(t, 2, r.ProtoMajor)
			_, err := io.ReadAll(r.Body)
			read <- err
		}))
		plain := new(http.Protocols)
		plain.SetUnencryptedHTTP2(true)
		s.Protocols = plain
		conn := connect(t, s)
		transport := &http.Transport{Protocols: plain, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		defer transport.CloseIdleConnections()
		body, more := io.Pipe()
		defer func() { _ = more.Close() }()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a"+webhook.Path, body)
		require.NoError(t, err)
		began := time.Now()
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.ErrorIs(t, <-read, os.ErrDeadlineExceeded)
		assert.LessOrEqual(t, time.Since(began), 11*time.Second)
	})
}

func TestAnswerThatIsNotTakenIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, server := range slowServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wrote := make(chan error, 1)
				conn := connect(t, server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
					wrote <- err
				})))
				_, err := io.WriteString(conn, "GET "+webhook.Path+" HTTP/1.1\r\nHost: a\r\n\r\n")
				require.NoError(t, err)
				began := time.Now()
				select {
				case err := <-wrote:
					require.Error(t, err)
				case <-time.After(time.Hour):
					require.Fail(t, "the handler is held for ever")
				}
				assert.LessOrEqual(t, time.Since(began), 15*time.Second)
			})
		})
	}
}

// A request that comes as late as may be is answered, however long its decision takes; so is the next one on the connection.
func TestServerLeavesTimeToDecide(t *testing.T) {
	t.Parallel()
	for name, server := range slowServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := connect(t, server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, err := io.ReadAll(r.Body)
					assert.NoError(t, err)
					time.Sleep(3 * time.Second) //nolint:forbidigo // the time is fake; manifests give the webhook no longer
					w.WriteHeader(http.StatusNoContent)
				})))
				answers := bufio.NewReader(conn)
				for range 3 {
					_, err := io.WriteString(conn, "POST "+webhook.Path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
					require.NoError(t, err)
					time.Sleep(9 * time.Second) //nolint:forbidigo // the time is fake
					_, err = io.WriteString(conn, "1")
					require.NoError(t, err)
					response, err := http.ReadResponse(answers, nil)
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					assert.Equal(t, http.StatusNoContent, response.StatusCode)
					time.Sleep(time.Minute) //nolint:forbidigo // the time is fake
				}
			})
		})
	}
}
