package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// patience bounds every wait: long enough for a loaded machine, and a failure in the end.
const patience = time.Minute

// loaded returns a certificate that is followed until the test ends.
func loaded(t *testing.T) *FileCertificate {
	t.Helper()
	directory := t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	project(t, directory, "v1", certPEM, keyPEM)
	c := follow(t, directory, logr.Discard())
	awaitSerial(t, c, 1, "the certificate is loaded")
	return c
}

// addresses counts those that freeAddress has returned.
var addresses atomic.Int64

// freeAddress returns an address that is free now. Its port is not one of those that the kernel chooses where any will do: another test
// could have such a port before it is used here.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+(int64(os.Getpid())+addresses.Add(1))%10_000)
		if listener, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
	require.Fail(t, "no port is free")
	return ""
}

// start runs something until the test ends, or until stop is called, which returns its error.
func start(t *testing.T, s manager.Runnable) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	return func() error { cancel(); return <-ended }
}

// serve runs the server for admission until the test ends and returns its URL.
func serve(t *testing.T, handler http.Handler, o options.Webhook) (a *Admission, url string, stop func() error) {
	t.Helper()
	o.Address = freeAddress(t)
	a, err := NewAdmission(o, loaded(t), handler)
	require.NoError(t, err)
	require.Error(t, a.Serving(), "it is not started")
	stop = start(t, a)
	require.Eventually(t, func() bool { return a.Serving() == nil }, patience, 10*time.Millisecond)
	return a, "https://" + o.Address + webhook.Path, stop
}

// get returns the major version of HTTP in which it was answered.
func get(t *testing.T, client *http.Client, url string) (major int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.ProtoMajor, errors.Join(err, response.Body.Close())
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
		ask := func(t *testing.T, url string) {
			t.Helper()
			if tt.refused {
				_, err := get(t, clientOf(tt.client), url)
				require.Error(t, err, tt.why)
				return
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) { // the server gives up a client that stalls
				major, err := get(t, clientOf(tt.client), url)
				require.NoError(c, err)
				assert.Equal(c, tt.major, major, tt.why)
			}, patience, 10*time.Millisecond)
		}
		t.Run(name+", admission", func(t *testing.T) {
			t.Parallel()
			_, url, _ := serve(t, noContent, tt.options)
			ask(t, url)
		})
		t.Run(name+", metrics", func(t *testing.T) {
			t.Parallel()
			config := &tls.Config{MinVersion: tls.VersionTLS12}
			Secured(tt.options, loaded(t).Get)(config)
			s, err := Listen(net.Listen, "metrics", "127.0.0.1:0", noContent, config)
			require.NoError(t, err)
			start(t, s)
			ask(t, "https://"+s.Listener.Addr().String())
		})
	}
}

// Any pod can reach the ports of probes and metrics: what it can hold in memory is bounded.
func TestServersForProbesAndMetricsAreBounded(t *testing.T) {
	t.Parallel()
	s, err := Listen(net.Listen, "metrics", "127.0.0.1:0", noContent, nil)
	require.NoError(t, err)
	start(t, s)
	address := s.Listener.Addr().String()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+strings.Repeat("a", 2*headerBytes))
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)

	var last net.Conn
	for range openConnections + 1 {
		last, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		conn := last
		t.Cleanup(func() { _ = conn.Close() })
	}
	require.NoError(t, last.SetReadDeadline(time.Now().Add(readTimeout/2)))
	_, err = last.Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "one connection more of the same address is closed at once")
}

func TestAddressInUseIsNamed(t *testing.T) {
	t.Parallel()
	first, err := Listen(net.Listen, "one", "127.0.0.1:0", noContent, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = first.Listener.Close() })
	address := first.Listener.Addr().String()
	_, err = Listen(net.Listen, "two", address, noContent, nil)
	assert.ErrorContains(t, err, "listen for two on "+address)
	a, err := NewAdmission(options.Webhook{Address: address}, NewFileCertificate(t.TempDir(), options.Certificate{}, logr.Discard()), noContent)
	require.NoError(t, err)
	assert.ErrorContains(t, a.Start(t.Context()), "serve admission on "+address)
}

func TestServerWithoutACertificateIsNotServing(t *testing.T) {
	t.Parallel()
	a, err := NewAdmission(options.Webhook{Address: freeAddress(t)}, NewFileCertificate(t.TempDir(), options.Certificate{}, logr.Discard()), noContent)
	require.NoError(t, err)
	start(t, a)
	assert.ErrorIs(t, a.Serving(), errNoCertificate)
}

// counted counts the handshakes of a server.
type counted struct {
	Certificate
	handshakes atomic.Int32
}

func (c *counted) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello != nil {
		c.handshakes.Add(1)
	}
	return c.Certificate.Get(hello)
}

func TestFrequentProbesShareAHandshake(t *testing.T) {
	t.Parallel()
	certificate := &counted{Certificate: loaded(t)}
	a, err := NewAdmission(options.Webhook{Address: freeAddress(t)}, certificate, noContent)
	require.NoError(t, err)
	stop := start(t, a)
	require.Eventually(t, func() bool { return a.Serving() == nil }, patience, 10*time.Millisecond)
	before := certificate.handshakes.Load()
	began := time.Now()
	for range 1000 {
		asked := time.Now()
		if err := a.Serving(); time.Since(asked) < 10*time.Second { // the server gives up a handshake that takes longer
			require.NoError(t, err)
		}
	}
	assert.LessOrEqual(t, certificate.handshakes.Load()-before, int32(1+time.Since(began)/answerLasts))
	require.NoError(t, stop())
	assert.Error(t, a.Serving(), "an earlier answer does not count for a server that stops")
}

func TestRequestInFlightIsAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	a, url, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		w.WriteHeader(http.StatusNoContent)
	}), options.Webhook{MinTLSVersion: tls.VersionTLS13})
	answered, stopped := make(chan error, 1), make(chan error, 1)
	client := clientOf(0)
	go func() {
		_, err := get(t, client, url)
		answered <- err
	}()
	<-arrived
	go func() { stopped <- stop() }()
	require.Eventually(t, func() bool { return a.Serving() != nil }, patience, 10*time.Millisecond, "no new connections")
	close(release)
	require.NoError(t, <-answered)
	require.NoError(t, <-stopped)
}

// TestDrain shows that callers are still answered, but asked to connect again: then they find another replica.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connections := make(chan string, 10)
			d := &Drain{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { connections <- r.RemoteAddr })}
			_, url, _ := serve(t, d, options.Webhook{MinTLSVersion: tls.VersionTLS13, HTTP2: http2})
			client := clientOf(0)
			ask := func() string {
				_, err := get(t, client, url)
				require.NoError(t, err)
				return <-connections
			}
			kept := ask()
			require.Eventually(t, func() bool {
				before := kept
				kept = ask()
				return kept == before // a client drops a connection that is slow to report that all is written
			}, patience, 10*time.Millisecond, "a connection is kept")
			d.On.Store(true)
			ask()
			assert.Eventually(t, func() bool { return ask() != kept }, patience, 10*time.Millisecond, "and given up when draining")
		})
	}
}
