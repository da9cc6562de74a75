package app

import (
	"context"
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
	"github.com/pod-reloader/pod-reloader/pkg/certs/rotate"
	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/serve"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// buildWebhook builds the server of the webhook; in direct mode there is nothing.
func (b *builder) buildWebhook() error {
	o := b.options
	b.drain = &serve.Drain{}
	if !o.Webhook.Enabled {
		return nil
	}
	handler, err := webhook.New(webhook.Dependencies{
		State: chain.Admission{Admission: b.store.Admission(), Chain: b.chain}, Keys: b.keys, Metrics: b.registry, Log: b.log.WithName("webhook"),
	}, webhook.Options{
		Kinds: b.kinds.Current, Reader: b.reader(), Scope: o.Selection.Scope,
		NamespaceLabels: b.namespaces.CurrentLabels,
		Settings:        o.Reload.Settings,
		PausedAt:        keptPause(o.Selection),
		Now:             b.host.Now,
	})
	if err != nil {
		return err
	}
	b.drain.Next = serve.WithDeadlines(handler)
	var further []func(*tls.Config)
	if o.Webhook.ClientCA != "" {
		callers := serve.NewCallers(o.Webhook, b.registry)
		b.drain.Next = callers.RequireCertificate(b.drain.Next)
		further = append(further, callers.Configure)
		b.conditions = append(b.conditions, condition{"client CA", callers.Valid})
	}
	if run := b.host.Serve; run != nil {
		b.serving = append(b.serving, manager.RunnableFunc(func(ctx context.Context) error {
			return run(ctx, o.Webhook.Address, b.drain)
		}))
		return nil
	}
	if b.certificate, err = b.buildCertificate(); err != nil {
		return err
	}
	server, err := serve.NewAdmission(o.Webhook, b.certificate, b.drain, further...)
	if err != nil {
		return err
	}
	b.registry.MustRegister(server.Closed)
	b.serving = append(b.serving, b.certificate, server)
	b.conditions = append(b.conditions, condition{"certificate", b.certificate.Valid}, condition{"webhook", server.Serving})
	return nil
}

// buildCertificate builds the source of the certificate of the webhook.
func (b *builder) buildCertificate() (serve.Certificate, error) {
	o := b.options
	if o.Webhook.Certificate.Mode == options.CertificateFiles {
		return serve.NewFileCertificate(o.Webhook.Directory, o.Webhook.Certificate, b.log.WithName("certificate")), nil
	}
	c := o.Webhook.Certificate
	return rotate.New(rotate.Options{
		Config: b.config, HTTPClient: b.secretsClient,
		Namespace: o.Namespace, Secret: c.Secret, WebhookConfiguration: c.WebhookConfiguration,
		Policy:  certs.Policy{Names: c.DNSNames, Lifetime: c.Lifetime, CALifetime: c.CALifetime},
		Metrics: b.registry, Random: b.host.Random, Log: b.log.WithName("certificate"),
	})
}
