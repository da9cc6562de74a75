package memnet_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/memnet"
)

// pair returns the two ends of a connection from host a to host b.
func pair(t *testing.T, n *memnet.Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Listen("b", ":80")
	require.NoError(t, err)
	client, err = n.Dial(t.Context(), "a", "b:80")
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	return client, server
}

func TestConnectionCarriesBytesBothWays(t *testing.T) {
	t.Parallel()
	client, server := pair(t, memnet.New())
	assert.Equal(t, "a", server.RemoteAddr().String(), "the server knows who asks by the host's name")
	_, err := client.Write([]byte("ping"))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	got, err := io.ReadAll(server)
	require.NoError(t, err, "what was written before the end arrives")
	assert.Equal(t, "ping", string(got))
	_, err = server.Write([]byte("pong"))
	require.ErrorIs(t, err, syscall.EPIPE)
	_, err = client.Read(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestDownBreaksConnectionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"a", "b"} {
		n := memnet.New()
		client, server := pair(t, n)
		_, err := client.Write([]byte("lost"))
		require.NoError(t, err)
		n.Down(host)
		for _, end := range []net.Conn{client, server} {
			_, err := end.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET, "host %s is down", host)
		}
		_, err = n.Dial(t.Context(), "a", "b:80")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
}

func TestAddressIsFreeAfterClose(t *testing.T) {
	t.Parallel()
	n := memnet.New()
	l, err := n.Listen("b", ":80")
	require.NoError(t, err)
	_, err = n.Listen("b", ":80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	waiting, err := n.Dial(t.Context(), "a", "b:80")
	require.NoError(t, err)
	n.CloseHost("b")
	_, err = waiting.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "a connection that was not accepted ends")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = n.Listen("b", ":80")
	require.NoError(t, err)
	_, err = n.Listen("b", "nonsense")
	assert.ErrorContains(t, err, "nonsense")
}

func TestHostRefusesConnectionsOfSomeHosts(t *testing.T) {
	t.Parallel()
	n := memnet.New()
	client, _ := pair(t, n)
	n.Refuse("b", func(from string) bool { return from == "a" })
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET, "the connections that there are break")
	_, err = n.Dial(t.Context(), "a", "b:80")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = n.Dial(t.Context(), "c", "b:80")
	require.NoError(t, err, "others are accepted")
	n.Accept("b")
	_, err = n.Dial(t.Context(), "a", "b:80")
	require.NoError(t, err)
}

func TestReadDeadlineGoesByFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, memnet.New())
		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := server.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, server.SetReadDeadline(time.Time{}))
		_, err = client.Write([]byte("x"))
		require.NoError(t, err)
		_, err = server.Read(make([]byte, 1))
		require.NoError(t, err, "a deadline that is taken away does not count any more")
	})
}

func TestHTTPInFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l, err := n.Listen("b", ":80")
		require.NoError(t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour) //nolint:forbidigo // the time is fake
			_, _ = io.WriteString(w, strings.ToUpper(r.URL.Path))
		}), ReadHeaderTimeout: time.Minute}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return n.Dial(ctx, "a", address)
		}}}
		started := time.Now()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://b:80/path", nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, "/PATH", string(body))
		assert.Equal(t, time.Hour, time.Since(started), "and no other time")
		n.Down("a")
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}
