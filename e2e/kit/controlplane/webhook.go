package controlplane

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// RedirectWebhooks makes a shipped webhook configuration reach a webhook on loopback: of each
// webhook only the client configuration changes, from the Service to address (host and port, like
// [Balancer.Addr]) with the same path, verified by the authority ca (PEM). There is no other way to
// route a Service without kube-proxy. A webhook that names no Service is an error.
func RedirectWebhooks(config *admissionv1.MutatingWebhookConfiguration, address string, ca []byte) error {
	for i := range config.Webhooks {
		webhook := &config.Webhooks[i]
		service := webhook.ClientConfig.Service
		if service == nil {
			return fmt.Errorf("webhook %s of %s names no Service to redirect", webhook.Name, config.Name)
		}
		url := "https://" + address
		if service.Path != nil {
			url += *service.Path
		}
		webhook.ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: ca}
	}
	return nil
}

// ServingCert writes tls.crt and tls.key, as the Secret of a serving certificate has them, into dir.
// The certificate is signed by [ControlPlane.CA] for the names and for loopback; of a webhook's
// Service the name is <service>.<namespace>.svc.
func (cp *ControlPlane) ServingCert(dir string, names ...string) error {
	pair, err := cp.authority.server(names...)
	if err != nil {
		return err
	}
	return pair.write(dir, "tls")
}

// ForeignCert is [ControlPlane.ServingCert] for names of elsewhere alone: no client on loopback accepts it.
func (cp *ControlPlane) ForeignCert(dir string, names ...string) error {
	pair, err := cp.authority.serverOf(names...)
	if err != nil {
		return err
	}
	return pair.write(dir, "tls")
}
