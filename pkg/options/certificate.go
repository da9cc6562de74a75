package options

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	// shortestLifetime is that of a certificate which is renewed every 40 seconds. Steps of a rotation take some seconds.
	shortestLifetime = time.Minute
	// caLifetimes is how many lifetimes of a certificate the lifetime of a CA has at least: a CA is renewed when a third of its
	// lifetime is left, and the certificates that it has signed end before it.
	caLifetimes = 3
	// longestLifetime is some hundred years: three times that is more than a duration can be.
	longestLifetime = 876_000 * time.Hour
)

// certificateFlags are those about the certificate of the webhook.
type certificateFlags struct {
	mode, secret, webhookConfiguration string
	names                              []string
	lifetime, caLifetime               time.Duration
}

func (f *certificateFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.mode, "certificate-mode", string(CertificateFiles),
		"where the webhook's certificate comes from: `files|self-managed`; self-managed: made and renewed by this program, which also sets the caBundle")
	set.StringVar(&f.secret, "certificate-secret", "",
		"`name` of the Secret with the self-managed certificates, created when missing (default: --installation-name with -certificates)")
	set.StringVar(&f.webhookConfiguration, "webhook-configuration", "",
		"`name` of the MutatingWebhookConfiguration whose caBundle is set with self-managed certificates (default: --installation-name)")
	set.StringSliceVar(&f.names, "certificate-dns-names", nil,
		"`names` or IP addresses in the self-managed certificate (default: those of a Service with the name of --installation-name); "+
			"if the flag is set, a replica is ready only with a certificate for all of these names")
	set.DurationVar(&f.lifetime, "certificate-lifetime", 90*24*time.Hour, "lifetime of the self-managed certificate; it is renewed when a third is left")
	set.DurationVar(&f.caLifetime, "certificate-ca-lifetime", 5*365*24*time.Hour, "lifetime of the self-managed CA; it is renewed when a third is left")
}

func (f *certificateFlags) complete(p *problems, installation, namespace string) Certificate {
	p.oneOf("certificate-mode", f.mode, string(CertificateFiles), string(CertificateSelfManaged))
	c := Certificate{
		Mode:                 CertificateMode(f.mode),
		Secret:               cmp.Or(f.secret, installation+"-certificates"),
		WebhookConfiguration: cmp.Or(f.webhookConfiguration, installation),
		DNSNames:             f.names,
		NamesRequired:        len(f.names) > 0,
		Lifetime:             f.lifetime, CALifetime: f.caLifetime,
	}
	if f.secret != "" {
		p.add("certificate-secret", reference.ValidName(f.secret))
	}
	if f.webhookConfiguration != "" {
		p.add("webhook-configuration", reference.ValidName(f.webhookConfiguration))
	}
	if len(c.DNSNames) == 0 {
		service := installation + "." + namespace + ".svc"
		c.DNSNames = []string{service}
		if c.Mode == CertificateSelfManaged {
			c.DNSNames = append(c.DNSNames, service+".cluster.local")
		}
	}
	for _, name := range f.names {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			p.add("certificate-dns-names", fmt.Errorf("%s is neither a DNS name nor an IP address", reference.Quote(name)))
		}
	}
	if c.Lifetime < shortestLifetime {
		p.add("certificate-lifetime", fmt.Errorf("%s: at least %s", c.Lifetime, shortestLifetime))
	}
	if c.CALifetime > longestLifetime {
		p.add("certificate-ca-lifetime", fmt.Errorf("%s: at most %s", c.CALifetime, longestLifetime))
	}
	if c.CALifetime/caLifetimes < c.Lifetime {
		p.add("certificate-ca-lifetime", fmt.Errorf("%s: at least %d times --certificate-lifetime, which is %s", c.CALifetime, caLifetimes, c.Lifetime))
	}
	return c
}
