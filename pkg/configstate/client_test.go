package configstate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
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
