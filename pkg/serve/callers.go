package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// Callers accepts only calls of the webhook that come with a client certificate, which is verified once for each connection. A
// connection without a certificate is accepted, so that the server can check itself whether it serves. The requests of such a
// connection are refused before they are read.
type Callers struct {
	file    string
	names   []string
	refused prometheus.Counter
}

// NewCallers returns what checks callers by --webhook-client-ca and --webhook-client-names, and registers its metric.
func NewCallers(o options.Webhook, registry prometheus.Registerer) *Callers {
	c := &Callers{file: o.ClientCA, names: o.ClientNames, refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pod_reloader_webhook_refused_callers_total",
		Help: "Calls of the webhook that were refused because the caller has no client certificate that --webhook-client-ca verifies.",
	})}
	registry.MustRegister(c.refused)
	return c
}

// Configure asks clients for a certificate.
func (c *Callers) Configure(config *tls.Config) {
	config.ClientAuth = tls.RequestClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		err := c.verify(state.PeerCertificates)
		if err != nil {
			c.refused.Inc()
		}
		return err
	}
}

// verify says why a certificate chain is not that of a caller, or nil.
func (c *Callers) verify(chain []*x509.Certificate) error {
	roots, err := c.authorities()
	if err != nil {
		return err
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("verify the client certificate by %s: %w", c.file, err)
	}
	if name := chain[0].Subject.CommonName; len(c.names) > 0 && !slices.Contains(c.names, name) {
		return fmt.Errorf("the client certificate has the common name %q, which --webhook-client-names does not have", name)
	}
	return nil
}

// authorities reads the file for each new connection. The API server keeps few of them, for long.
func (c *Callers) authorities() (*x509.CertPool, error) {
	content, err := os.ReadFile(c.file)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("--webhook-client-ca: " + c.file + " has no certificate in PEM form")
	}
	return pool, nil
}

// Valid says why no caller is accepted now, or nil.
func (c *Callers) Valid() error {
	_, err := c.authorities()
	return err
}

// RequireCertificate passes on the requests of connections with a certificate.
func (c *Callers) RequireCertificate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			c.refused.Inc()
			w.Header().Set("Connection", "close")
			http.Error(w, "a client certificate is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
