package configstate

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The caller may go while a large response waits for its turn.
func TestLargeResponseThatIsNotAdmittedIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 100<<10))
	}))
	t.Cleanup(server.Close)
	c, err := newClient(&rest.Config{Host: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	k := numbered(1)
	for range largeOfANamespace {
		_, err := c.large.Acquire(t.Context(), k.namespace, 1)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := c.meta(ctx, k, wire.Keep{})
		done <- err
	}()
	require.Eventually(t, func() bool { return c.large.Waiting() == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestConnectionThatIsLostBeforeTheAnswerIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	for name, c := range map[string]struct {
		fail     func(http.ResponseWriter)
		failures int64
		requests int64
		fails    bool
	}{
		"none":        {requests: 1},
		"closed":      {fail: hangUp(-1), failures: 1, requests: 2},
		"reset":       {fail: hangUp(0), failures: 1, requests: 2},
		"lost again":  {fail: hangUp(-1), failures: 2, requests: 2, fails: true},
		"an answer":   {fail: refused, failures: 1, requests: 1, fails: true},
		"reset again": {fail: hangUp(0), failures: 2, requests: 2, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) <= c.failures {
					c.fail(w)
				}
			}))
			t.Cleanup(server.Close)
			client, err := newClient(&rest.Config{Host: server.URL}, &http.Client{Transport: &http.Transport{}})
			require.NoError(t, err)
			body, err := stream(t.Context(), client.request(reference.Secret, "shop", acceptList))
			assert.Equal(t, c.fails, err != nil, "%v", err)
			if err == nil {
				require.NoError(t, body.Close())
			}
			assert.Equal(t, c.requests, requests.Load())
		})
	}
}

// hangUp closes the connection of a request; with 0 seconds to linger, it is reset.
func hangUp(linger int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_ = connection.(*net.TCPConn).SetLinger(linger)
		_ = connection.Close()
	}
}
