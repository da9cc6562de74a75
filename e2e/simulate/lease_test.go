package simulate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/pod-reloader/leases/pod-reloader"

var errTransport = errors.New("sent over a connection")

// transport returns one whose API server answers with a handler.
func transport(online context.Context, handler http.HandlerFunc) http.RoundTripper {
	next := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errTransport })
	return &shortcut{next: next, server: handler, client: "replica-0.1", online: online}
}

func lease(ctx context.Context, t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, apiURL+path, strings.NewReader("hello"))
	require.NoError(t, err)
	return r
}

func TestLeasesNeedNoConnection(t *testing.T) {
	t.Parallel()
	rt := transport(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "replica-0.1", r.RemoteAddr)
		assert.Equal(t, leasePath+"?timeout=5s", r.RequestURI)
		content, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(content)
	})
	response, err := rt.RoundTrip(lease(t.Context(), t, leasePath+"?timeout=5s"))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusConflict, response.StatusCode)
	assert.EqualValues(t, 5, response.ContentLength)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(content))

	_, err = rt.RoundTrip(lease(t.Context(), t, "/api/v1/namespaces/shop/configmaps/app")) //nolint:bodyclose // there is none
	assert.ErrorIs(t, err, errTransport)
}

func TestAllButWatchesNeedNoConnection(t *testing.T) {
	t.Parallel()
	with := func(all bool) *shortcut { return &shortcut{all: all} }
	request := func(path string) *http.Request { return lease(t.Context(), t, path) }
	for path, want := range map[string]struct{ all, some bool }{
		leasePath:                     {true, true},
		"/api/v1/secrets":             {true, false},
		"/api/v1/secrets?limit=500":   {true, false},
		"/api/v1/secrets?watch=true":  {false, false},
		"/api/v1/pods?a=b&watch=1":    {false, false},
		leasePath + "?watch=true&a=b": {true, true},
	} {
		assert.Equal(t, want.all, with(true).takes(request(path)), path)
		assert.Equal(t, want.some, with(false).takes(request(path)), path)
	}
}

func TestLeaseRequestFailsAsOverAConnection(t *testing.T) {
	t.Parallel()
	t.Run("closed without an answer", func(t *testing.T) {
		t.Parallel()
		rt := transport(t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		_, err := rt.RoundTrip(lease(t.Context(), t, leasePath)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, io.EOF)
	})
	t.Run("closed within the answer", func(t *testing.T) {
		t.Parallel()
		rt := transport(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("hal"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		response, err := rt.RoundTrip(lease(t.Context(), t, leasePath))
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, "hal", string(content))
	})
	t.Run("client gives up", func(t *testing.T) {
		t.Parallel()
		ctx, giveUp := context.WithCancel(t.Context())
		noticed := make(chan struct{})
		rt := transport(t.Context(), func(_ http.ResponseWriter, r *http.Request) {
			giveUp()
			<-r.Context().Done()
			close(noticed)
			panic(http.ErrAbortHandler)
		})
		_, err := rt.RoundTrip(lease(ctx, t, leasePath)) //nolint:bodyclose // there is none
		assert.Error(t, err)
		<-noticed
	})
	t.Run("replica is cut off", func(t *testing.T) {
		t.Parallel()
		online, offline := context.WithCancel(t.Context())
		rt := transport(online, func(http.ResponseWriter, *http.Request) {
			offline()
			<-t.Context().Done() // it has not answered by the end of the test
		})
		_, err := rt.RoundTrip(lease(t.Context(), t, leasePath)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = rt.RoundTrip(lease(t.Context(), t, leasePath)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}
