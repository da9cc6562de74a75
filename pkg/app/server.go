package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// defaultInFlight is a server's inFlight.
const defaultInFlight = 5 * time.Second

// How long a caller may take: any pod can reach the webhook's port, and one that says or takes nothing must not hold what
// answers it. The API server waits for 3 s, a scraper of metrics longer.
const (
	// readTimeout bounds the reading of a request.
	readTimeout = 10 * time.Second
	// writeTimeout bounds all that follows the header of a request, the reading of its body included.
	writeTimeout = readTimeout + 5*time.Second
)

// server is one of the program's listeners. It binds when it is made, so that an address in use is known at once, and
// lives longer than the manager: admission is served until the endpoint has drained.
type server struct {
	name     string
	listener net.Listener
	http     *http.Server
	log      logr.Logger
	serving  atomic.Bool
	// inFlight is how long requests that are being answered may still take when it stops.
	inFlight time.Duration
}

// listen binds an address.
func (b *builder) listen(name, address string, handler http.Handler) (*server, error) {
	return listen(b.host.Listen, name, address, handler, b.log)
}

func listen(
	bind func(network, address string) (net.Listener, error), name, address string, handler http.Handler, log logr.Logger,
) (*server, error) {
	listener, err := bind("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w", name, address, err)
	}
	return &server{name: name, listener: listener, log: log, inFlight: defaultInFlight, http: &http.Server{
		Handler:        handler,
		ReadTimeout:    readTimeout, // of the header, too
		WriteTimeout:   writeTimeout,
		IdleTimeout:    90 * time.Second,
		MaxHeaderBytes: 1 << 20,
		ErrorLog:       httpErrors(log, name),
	}}, nil
}

// secure makes the server speak TLS.
func (s *server) secure(config *tls.Config) {
	s.http.TLSConfig = config
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(config.NextProtos[0] == "h2")
	s.http.Protocols = protocols
}

// Start serves until the context ends, then lets requests end that are in flight.
func (s *server) Start(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.inFlight)
		defer cancel()
		stopped <- s.http.Shutdown(grace)
	}()
	s.serving.Store(true)
	defer s.serving.Store(false)
	s.log.Info("Listening", "for", s.name, "address", s.listener.Addr().String())
	if err := s.serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.name, err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop serving %s: %w", s.name, err)
	}
	return nil
}

// Serving says why the server does not answer now, or nil.
func (s *server) Serving() error {
	if !s.serving.Load() {
		return fmt.Errorf("the server for %s is not running", s.name)
	}
	return nil
}

func (s *server) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// tlsConfig is that of the webhook and of secure metrics.
func tlsConfig(o options.Webhook, get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	protocols := []string{"h2", "http/1.1"}
	if !o.HTTP2 {
		protocols = []string{"http/1.1"}
	}
	return &tls.Config{MinVersion: o.MinTLSVersion, NextProtos: protocols, GetCertificate: get}
}

// drain asks callers to leave, once it is on, by ending each connection after its answer: the API server keeps
// connections to a replica open long after the Service has dropped it.
type drain struct {
	on   atomic.Bool
	next http.Handler
}

func (d *drain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.on.Load() {
		w.Header().Set("Connection", "close")
	}
	d.next.ServeHTTP(w, r)
}
