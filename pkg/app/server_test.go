package app

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// patience bounds every wait: long enough for a loaded machine, and a failure in the end.
const patience = time.Minute

// serve runs a server with TLS until the test ends and returns its address.
func serve(t *testing.T, handler http.Handler, o options.Webhook) (s *server, stop func() error) {
	t.Helper()
	directory := t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	project(t, directory, "v1", certPEM, keyPEM)
	c := newCertificate(directory, os.ReadFile, logr.Discard())
	c.load()
	s, err := listen(net.Listen, "test", "127.0.0.1:0", handler, logr.Discard())
	require.NoError(t, err)
	s.secure(tlsConfig(o, c.Get))
	s.inFlight = patience // that connections end in time is not what is tested
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	return s, func() error { cancel(); return <-ended }
}

// get returns the major version of HTTP in which it was answered.
func get(t *testing.T, client *http.Client, url string) (major int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.ProtoMajor, err
}

func clientOf(maxVersion uint16) *http.Client {
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MaxVersion: maxVersion},
	}}
}

var noContent = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

func TestServerProtocols(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options options.Webhook
		client  uint16
		refused bool
		major   int
		why     string
	}{
		"default":      {options.Webhook{MinTLSVersion: tls.VersionTLS13, HTTP2: true}, 0, false, 2, "the API server speaks HTTP/2"},
		"HTTP/2 off":   {options.Webhook{MinTLSVersion: tls.VersionTLS13}, 0, false, 1, "off by flag"},
		"old client":   {options.Webhook{MinTLSVersion: tls.VersionTLS13, HTTP2: true}, tls.VersionTLS12, true, 0, "TLS 1.3 is the least"},
		"TLS 1.2 flag": {options.Webhook{MinTLSVersion: tls.VersionTLS12, HTTP2: true}, tls.VersionTLS12, false, 2, "allowed by flag"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, stop := serve(t, noContent, tt.options)
			major, err := get(t, clientOf(tt.client), "https://"+s.listener.Addr().String())
			if tt.refused {
				require.Error(t, err, tt.why)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.major, major, tt.why)
			require.NoError(t, s.Serving())
			require.NoError(t, stop())
			assert.Error(t, s.Serving())
		})
	}
}

func TestListenTellsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	first, err := listen(net.Listen, "one", "127.0.0.1:0", noContent, logr.Discard())
	require.NoError(t, err)
	t.Cleanup(func() { _ = first.listener.Close() })
	_, err = listen(net.Listen, "two", first.listener.Addr().String(), noContent, logr.Discard())
	assert.ErrorContains(t, err, "listen for two on 127.0.0.1:")
}

// TestDrain shows that callers are still answered, but asked to connect anew: then they find another replica.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connections := make(chan string, 10)
			d := &drain{next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { connections <- r.RemoteAddr })}
			s, _ := serve(t, d, options.Webhook{MinTLSVersion: tls.VersionTLS13, HTTP2: http2})
			client := clientOf(0)
			ask := func() string {
				_, err := get(t, client, "https://"+s.listener.Addr().String())
				require.NoError(t, err)
				return <-connections
			}
			kept := ask()
			require.Eventually(t, func() bool {
				before := kept
				kept = ask()
				return kept == before // a client drops a connection that was slow to tell that all is written
			}, patience, 10*time.Millisecond, "a connection is kept")
			d.on.Store(true)
			ask()
			assert.Eventually(t, func() bool { return ask() != kept }, patience, 10*time.Millisecond, "and given up when draining")
		})
	}
}
