package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// Admission serves the webhook. The webhook.Server counts requests; it does not serve itself, since it bounds neither the
// connections nor what each of them may hold.
type Admission struct {
	crwebhook.Server
	address     string
	tls         *tls.Config
	certificate Certificate
	// Closed counts connections that were closed since there were too many.
	Closed prometheus.Counter
	// answered is when the server has last answered itself, nil if never; listening is set when it takes
	// connections, stopping when it takes no more.
	answered            atomic.Pointer[time.Time]
	listening, stopping atomic.Bool
}

var errNotServing = errors.New("the webhook is not started yet")

// answerLasts is how long an answer of the server to itself counts. A probe costs both sides of a TLS handshake, which is
// more than a review, and there may be any number of callers; the kubelet asks more rarely.
const answerLasts = time.Second

// What callers can hold in memory before a handler reads a body: any pod can reach the port. An API server has one connection,
// or with HTTP/1.1 one for each request in flight, some hundred.
const (
	admissionConnections = 512
	// admissionStreams are the requests of a connection with HTTP/2; a client opens another one for more. admissionBuffer is
	// what a connection receives before it is read.
	admissionStreams = 100
	admissionBuffer  = 128 << 10
	// admissionShutdown is how long requests that are being decided may still take when the server stops.
	admissionShutdown = time.Minute
	// selfTimeout bounds the question of the server to itself.
	selfTimeout = 10 * time.Second
)

// NewAdmission returns a server for admission that serves a handler with a certificate. Further functions change its settings of TLS.
// Start runs it; the address is not bound before that.
func NewAdmission(o options.Webhook, c Certificate, handler http.Handler, further ...func(*tls.Config)) (*Admission, error) {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return nil, fmt.Errorf("address of the webhook: %w", err)
	}
	config := &tls.Config{}
	for _, configure := range append([]func(*tls.Config){Secured(o, c.Get)}, further...) {
		configure(config)
	}
	mux := http.NewServeMux()
	mux.Handle("/", WithDeadlines(http.NotFoundHandler())) // a slow body ends on any path
	server := crwebhook.NewServer(crwebhook.Options{WebhookMux: mux})
	server.Register(webhook.Path, handler)
	return &Admission{
		Server: server, address: o.Address, tls: config, certificate: c,
		Closed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pod_reloader_webhook_closed_connections_total",
			Help: "Connections to the webhook that were closed because too many were open: each time, one of the address with the most connections.",
		}),
	}, nil
}

// server returns what serves on a connection.
func (a *Admission) server() *http.Server {
	return &http.Server{
		Handler:        a.WebhookMux(),
		ReadTimeout:    readTimeout, // of the handshake and the header, too
		WriteTimeout:   writeTimeout,
		IdleTimeout:    90 * time.Second,
		MaxHeaderBytes: headerBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          admissionStreams,
			MaxReceiveBufferPerConnection: admissionBuffer,
			MaxReceiveBufferPerStream:     admissionBuffer,
		},
	}
}

// Start serves until the context ends, then lets requests end that are in flight.
func (a *Admission) Start(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { a.stopping.Store(true) })()
	defer a.stopping.Store(true)
	listener, err := net.Listen("tcp", a.address)
	if err != nil {
		return fmt.Errorf("serve admission on %s: %w", a.address, err)
	}
	a.listening.Store(true)
	shutdown := admissionShutdown
	serving := &manager.Server{
		Name: "admission", Server: a.server(), ShutdownTimeout: &shutdown,
		Listener: tls.NewListener(newFairListener(listener, admissionConnections, a.Closed.Inc), a.tls),
	}
	if err := serving.Start(ctx); err != nil {
		return fmt.Errorf("serve admission on %s: %w", a.address, err)
	}
	return nil
}

// Serving says why the server does not answer now, or nil. The server asks itself, which without a certificate would be a
// failed handshake and a line in the log for each probe. The StartedChecker of controller-runtime is bound to its own server, connects for
// each probe, and waits up to 10 seconds.
func (a *Admission) Serving() error {
	if _, err := a.certificate.Get(nil); err != nil {
		return err
	}
	now := time.Now()
	if last := a.answered.Load(); last != nil && !a.stopping.Load() && now.Sub(*last) < answerLasts {
		return nil
	}
	if err := a.ask(); err != nil {
		return err
	}
	a.answered.Store(&now)
	return nil
}

// ask connects to the server itself.
func (a *Admission) ask() error {
	if !a.listening.Load() {
		return errNotServing
	}
	dialer := &net.Dialer{Timeout: selfTimeout}
	conn, err := tls.DialWithDialer(dialer, "tcp", a.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is sent
	if err != nil {
		return fmt.Errorf("the webhook does not answer: %w", err)
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("the webhook does not answer: close the connection: %w", err)
	}
	return nil
}
