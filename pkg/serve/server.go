package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// shutdownTimeout is how long requests that are being answered may still take when a server for probes or metrics stops.
const shutdownTimeout = 5 * time.Second

// How long a caller may take. Any pod can reach the webhook's port: a caller that sends or reads nothing must not occupy a
// connection. The API server waits for 3 s, a scraper of metrics longer.
const (
	// readTimeout bounds the reading of a request.
	readTimeout = 10 * time.Second
	// writeTimeout bounds all that follows the header of a request, the reading of its body included.
	writeTimeout = readTimeout + 5*time.Second
)

// What callers of the servers for probes and metrics can hold in memory: any pod can reach these ports, too. The kubelet and a
// scraper have a few connections. headerBytes bounds the header of a request of any server.
const (
	openConnections = 64
	headerBytes     = 16 << 10
)

// Listen binds an address for probes or metrics by a function such as net.Listen, so that one in use is known before anything starts. The
// server speaks TLS if it is given a configuration.
func Listen(
	bind func(network, address string) (net.Listener, error), name, address string, handler http.Handler, secure *tls.Config,
) (*manager.Server, error) {
	listener, err := bind("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w", name, address, err)
	}
	listener = newFairListener(listener, openConnections, func() {})
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	shutdown := shutdownTimeout
	return &manager.Server{Name: name, Listener: listener, ShutdownTimeout: &shutdown, Server: &http.Server{
		Handler:        handler,
		ReadTimeout:    readTimeout, // of the header, too
		WriteTimeout:   writeTimeout,
		IdleTimeout:    90 * time.Second,
		MaxHeaderBytes: headerBytes,
	}}, nil
}

// Secured sets what the flags say about TLS, and where the certificate comes from.
func Secured(o options.Webhook, get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(*tls.Config) {
	return func(config *tls.Config) {
		config.MinVersion, config.GetCertificate = o.MinTLSVersion, get
		config.NextProtos = []string{"h2", "http/1.1"}
		if !o.HTTP2 {
			config.NextProtos = []string{"http/1.1"}
		}
	}
}

// WithDeadlines bounds how long the caller of a handler may take.
func WithDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Every http.Server has these deadlines. They are set for each request, since HTTP/1.1 keeps that for writing.
		control, now := http.NewResponseController(w), time.Now()
		_ = control.SetReadDeadline(now.Add(readTimeout))
		_ = control.SetWriteDeadline(now.Add(writeTimeout))
		next.ServeHTTP(w, r)
	})
}

// Drain asks callers to leave, once it is on, by ending each connection after its answer: the API server keeps
// connections to a replica open long after the Service has dropped it.
type Drain struct {
	On   atomic.Bool
	Next http.Handler // what answers
}

func (d *Drain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.On.Load() {
		w.Header().Set("Connection", "close")
	}
	d.Next.ServeHTTP(w, r)
}
