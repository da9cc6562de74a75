package zeroing_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/zeroing"
)

// proxy is an HTTP proxy that knows nothing but CONNECT. It counts the connections that it makes.
type proxy struct {
	made atomic.Int32
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	p.made.Add(1)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(there, buffered); _ = there.Close() })
	copies.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
	copies.Wait()
}

// The API server is trusted, and sees who asks, behind a proxy as it is without one.
func TestThroughAProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "HTTP/1.1", r.Proto)
		if assert.NotEmpty(t, r.TLS.PeerCertificates, "the client's certificate") {
			_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.Organization[0])
		}
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	p := &proxy{}
	between := httptest.NewServer(p)
	t.Cleanup(between.Close)
	address, err := url.Parse(between.URL)
	require.NoError(t, err)

	client, err := zeroing.NewHTTPClient(&rest.Config{
		Host: server.URL, Proxy: http.ProxyURL(address), TLSClientConfig: credentials(t, server),
	})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "Acme Co", string(body), "the server knows who asked")
	assert.EqualValues(t, 1, p.made.Load(), "it went through the proxy")
}

// credentials are those of a client that trusts the server and has, for want of another one, the server's certificate.
func credentials(t *testing.T, server *httptest.Server) rest.TLSClientConfig {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return rest.TLSClientConfig{
		CAData: certificate, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}
