package rotate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// errNoCertificate says that there has been no certificate since the start.
var errNoCertificate = errors.New("no certificate is loaded yet")

// Get is for tls.Config.
func (r *Rotator) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := r.state.Load().serving; pair != nil {
		return pair, nil
	}
	return nil, errNoCertificate
}

// Valid says why the API server cannot trust this replica now, or nil. Without a webhook configuration it calls none.
func (r *Rotator) Valid() error {
	s, now := r.state.Load(), r.clock.now()
	err := r.valid(s, now)
	if err != nil && s.failure != nil {
		return fmt.Errorf("%w: %w", err, s.failure)
	}
	return err
}

func (r *Rotator) valid(s *state, now time.Time) error {
	if !s.read || s.serving == nil {
		return fmt.Errorf("%w: waiting for the Secret %s/%s", errNoCertificate, r.options.Namespace, r.options.Secret)
	}
	if leaf := s.serving.Leaf; now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		// Without the time: the readiness is logged where its text changes.
		return fmt.Errorf("by the API server's clock, the certificate is not valid now: it is from %s to %s",
			leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	if !r.options.Policy.Trusted(s.serving, s.bundles, now) {
		return fmt.Errorf("the caBundle of the webhook configuration %s does not trust the certificate", r.options.WebhookConfiguration)
	}
	return nil
}

// NotAfter returns the end of the certificate's validity; zero if there is none.
func (r *Rotator) NotAfter() time.Time {
	if pair := r.state.Load().serving; pair != nil {
		return pair.Leaf.NotAfter
	}
	return time.Time{}
}

// register adds the metrics.
func (r *Rotator) register(registry prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("pod_reloader_certificate_authority_expiry_timestamp_seconds",
		"End of validity of the self-managed CA of the webhook, in seconds since 1970; 0 if there is none.", func() float64 {
			if end := r.state.Load().caNotAfter; !end.IsZero() {
				return float64(end.Unix())
			}
			return 0
		})
	gauge("pod_reloader_certificate_trusted", "1 if the webhook configuration trusts the self-managed certificate, else 0.", func() float64 {
		if r.Valid() == nil {
			return 1
		}
		return 0
	})
}
