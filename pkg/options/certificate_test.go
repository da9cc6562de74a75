package options_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

func TestCertificateNamesComeFromTheInstallation(t *testing.T) {
	t.Parallel()
	o := complete(t, "--certificate-mode=self-managed", "--installation-name=second")
	assert.Equal(t, options.Certificate{
		Mode: options.CertificateSelfManaged, Secret: "second-certificates", WebhookConfiguration: "second",
		DNSNames: []string{"second.tools.svc", "second.tools.svc.cluster.local"},
		Lifetime: 90 * 24 * time.Hour, CALifetime: 5 * 365 * 24 * time.Hour,
	}, o.Webhook.Certificate)
	o = complete(t, "--certificate-secret=s", "--webhook-configuration=w", "--certificate-dns-names=a.example,b.example",
		"--certificate-lifetime=24h", "--certificate-ca-lifetime=72h")
	assert.Equal(t, options.Certificate{
		Mode: options.CertificateFiles, Secret: "s", WebhookConfiguration: "w", DNSNames: []string{"a.example", "b.example"}, NamesRequired: true,
		Lifetime: 24 * time.Hour, CALifetime: 72 * time.Hour,
	}, o.Webhook.Certificate)
}

func TestCertificateProblems(t *testing.T) {
	t.Parallel()
	_, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, "--certificate-mode=acme", "--certificate-secret=A",
		"--webhook-configuration=A", "--certificate-dns-names=ok.svc,*.svc", "--certificate-lifetime=1s", "--certificate-ca-lifetime=2s")
	for _, want := range []string{
		`--certificate-mode: "acme": want files or self-managed`, "--certificate-secret: ", "--webhook-configuration: ",
		`--certificate-dns-names: "*.svc" is not a DNS name`, "--certificate-lifetime: 1s: at least 1m0s",
		"--certificate-ca-lifetime: 2s: at least 3 times --certificate-lifetime, which is 1s",
	} {
		require.ErrorContains(t, err, want)
	}
}
