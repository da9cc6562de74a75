package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// buildWebhook makes what serves admission; in direct mode there is nothing.
func (b *builder) buildWebhook() error {
	o := b.options
	b.drain = &drain{}
	if !o.Webhook.Enabled {
		return nil
	}
	handler, err := webhook.New(webhook.Dependencies{
		State: chain.Admission{Admission: b.store.Admission(), Chain: b.chain}, Keys: b.keys, Metrics: b.registry, Log: b.log.WithName("webhook"),
	}, webhook.Options{
		Kinds: b.kinds.Current, Reader: b.reader(), Scope: o.Selection.Scope,
		NamespaceLabels: b.namespaces.Labels,
		Revision:        o.Reload.Revision, ReloadMissingRequired: o.Reload.ReloadMissingRequired,
		NotifyOnly: o.Reload.NotifyOnly,
		Now:        b.host.Now,
	})
	if err != nil {
		return err
	}
	b.drain.next = timely(handler)
	var further []func(*tls.Config)
	if o.Webhook.ClientCA != "" {
		callers := newCallers(o.Webhook, b.registry)
		b.drain.next = callers.only(b.drain.next)
		further = append(further, callers.configure)
		b.conditions = append(b.conditions, condition{"client CA", callers.Valid})
	}
	if serve := b.host.Serve; serve != nil {
		b.serving = append(b.serving, manager.RunnableFunc(func(ctx context.Context) error {
			return serve(ctx, o.Webhook.Address, b.drain)
		}))
		return nil
	}
	if b.certificate, err = b.buildCertificate(); err != nil {
		return err
	}
	server, err := newAdmission(o.Webhook, b.certificate, b.drain, further...)
	if err != nil {
		return err
	}
	b.serving = append(b.serving, b.certificate, server)
	b.conditions = append(b.conditions, condition{"certificate", b.certificate.Valid}, condition{"webhook", server.Serving})
	return nil
}

// admission serves the webhook by a webhook.Server.
type admission struct {
	crwebhook.Server
	address     string
	certificate servingCertificate
	// answered is when the server has last answered itself, nil if never; stopping is set when it takes no more connections.
	answered atomic.Pointer[time.Time]
	stopping atomic.Bool
}

// answerLasts is how long an answer of the server to itself counts. A probe costs both sides of a TLS handshake, which is
// more than a review, and there may be any number of callers; the kubelet asks more rarely.
const answerLasts = time.Second

func newAdmission(o options.Webhook, c servingCertificate, handler http.Handler, further ...func(*tls.Config)) (*admission, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the webhook: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("address of the webhook: port: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", timely(http.NotFoundHandler())) // a slow body ends on any path
	server := crwebhook.NewServer(crwebhook.Options{
		Host: host, Port: number, WebhookMux: mux, TLSOpts: append([]func(*tls.Config){secured(o, c.Get)}, further...),
	})
	server.Register(webhook.Path, handler)
	return &admission{Server: server, address: o.Address, certificate: c}, nil
}

// Start serves until the context ends, then lets requests end that are in flight.
func (a *admission) Start(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { a.stopping.Store(true) })()
	defer a.stopping.Store(true)
	if err := a.Server.Start(ctx); err != nil {
		return fmt.Errorf("serve admission on %s: %w", a.address, err)
	}
	return nil
}

// Serving says why the server does not answer now, or nil. The server asks itself, which without a certificate would be a
// failed handshake and a line in the log for each probe.
func (a *admission) Serving() error {
	if _, err := a.certificate.Get(nil); err != nil {
		return err
	}
	now := time.Now()
	if last := a.answered.Load(); last != nil && !a.stopping.Load() && now.Sub(*last) < answerLasts {
		return nil
	}
	if err := a.StartedChecker()(nil); err != nil {
		return err
	}
	a.answered.Store(&now)
	return nil
}
