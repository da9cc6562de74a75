package options

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// webhookFlags are those about admission.
type webhookFlags struct {
	set                                  *pflag.FlagSet
	enabled, http2                       bool
	address, directory, clientCA, minTLS string
	clientNames                          []string
	certificate                          certificateFlags
	grace                                time.Duration
}

func (f *webhookFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.BoolVar(&f.enabled, "webhook", true, "serve the admission webhook; false: direct mode, the loop writes pod templates itself")
	set.StringVar(&f.address, "webhook-bind-address", ":9443", "`address` of the webhook")
	set.StringVar(&f.directory, "webhook-tls-directory", "", "`directory` with tls.crt and tls.key, read again when they change (default: k8s-webhook-server/serving-certs in the directory for temporary files)")
	set.StringVar(&f.clientCA, "webhook-client-ca", "", "`path` of the CA certificates for callers of the webhook, read again when it changes: calls without a client certificate signed by one are refused (default: no certificate is needed)")
	set.StringSliceVar(&f.clientNames, "webhook-client-names", nil, "only client certificates with these common `names`, comma-separated or repeated; needs --webhook-client-ca")
	f.certificate.add(set)
	set.StringVar(&f.minTLS, "tls-min-version", "1.3", "oldest TLS version of the webhook and of secure metrics: `1.2|1.3`")
	set.BoolVar(&f.http2, "enable-http2", true, "HTTP/2 for the webhook and secure metrics; false: HTTP/1.1 only")
	set.DurationVar(&f.grace, "shutdown-grace-period", 10*time.Second, "how long admission is served after SIGTERM, while the endpoint drains")
}

func (f *webhookFlags) complete(p *problems, installation, namespace string) Webhook {
	w := Webhook{
		Enabled:   f.enabled,
		Address:   p.address("webhook-bind-address", f.address),
		Directory: f.directory,
		HTTP2:     f.http2,
		ClientCA:  f.clientCA, ClientNames: names(f.clientNames),
	}
	f.checkCallers(p, w)
	w.Certificate = f.certificate.complete(p, installation, namespace)
	w.checkEffect(p)
	if w.Directory == "" {
		w.Directory = defaultDirectory()
	}
	if p.oneOf("tls-min-version", f.minTLS, "1.2", "1.3") {
		w.MinTLSVersion = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[f.minTLS]
	}
	return w
}

// checkCallers adds what is wrong with the flags that say which callers the webhook has. An empty value, such as that of a variable
// which is not set, would let in all.
func (f *webhookFlags) checkCallers(p *problems, w Webhook) {
	if f.set.Changed("webhook-client-ca") && w.ClientCA == "" {
		p.add("webhook-client-ca", errors.New("the path is empty: name the file with the CA certificates, or remove the flag, and callers need no certificate"))
	}
	switch {
	case len(w.ClientNames) > 0 && w.ClientCA == "":
		p.add("webhook-client-names", errors.New("needs --webhook-client-ca, which verifies the certificates that have the names"))
	case len(w.ClientNames) == 0 && f.set.Changed("webhook-client-names"):
		p.add("webhook-client-names", errors.New("it has no name: name the callers, or remove the flag, and all that --webhook-client-ca verifies may call"))
	}
}

// checkEffect adds the flags that have no effect with another flag.
func (w Webhook) checkEffect(p *problems) {
	selfManaged := w.Certificate.Mode == CertificateSelfManaged
	if !w.Enabled && w.ClientCA != "" {
		p.add("webhook-client-ca", errNoWebhook)
	}
	if !w.Enabled && selfManaged {
		p.add("certificate-mode", errNoWebhook)
	}
	if selfManaged && w.Directory != "" {
		p.add("webhook-tls-directory", errors.New("has no effect with --certificate-mode=self-managed: remove one of the two"))
	}
}

// errNoWebhook is about a flag of the webhook in direct mode.
var errNoWebhook = errors.New("has no effect with --webhook=false: remove one of the two")

// defaultDirectory is where SAP's pod-reloader looks for the certificate, too.
func defaultDirectory() string {
	return filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
}
