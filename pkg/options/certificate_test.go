package options_test

import (
	"strings"
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
		`--certificate-dns-names: "*.svc" is neither a DNS name nor an IP address`, "--certificate-lifetime: 1s: at least 1m0s",
		"--certificate-ca-lifetime: 2s: at least 3 times --certificate-lifetime, which is 1s",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestCertificateForAnAddressIsAccepted(t *testing.T) {
	t.Parallel()
	names := []string{"10.0.0.1", "2001:db8::1", "webhook.example"}
	o := complete(t, "--certificate-mode=self-managed", "--certificate-dns-names="+strings.Join(names, ","))
	assert.Equal(t, names, o.Webhook.Certificate.DNSNames)
}

// A duration has no more than 292 years.
func TestCertificateLifetimesAreLimited(t *testing.T) {
	t.Parallel()
	complete(t, "--certificate-lifetime=292000h", "--certificate-ca-lifetime=876000h")
	for name, args := range map[string][]string{
		"--certificate-ca-lifetime: 2400000h0m0s: at most 876000h0m0s": {"--certificate-ca-lifetime=2400000h"},
		"--certificate-ca-lifetime: 43800h0m0s: at least 3 times":      {"--certificate-lifetime=876000h"},
	} {
		_, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, args...)
		assert.ErrorContains(t, err, name)
	}
}

func TestOneSecretForKeysAndCertificatesIsRefused(t *testing.T) {
	t.Parallel()
	same := []string{"--certificate-secret=keys", "--digest-key-secret=keys"}
	_, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, append(same, "--certificate-mode=self-managed")...)
	assert.ErrorContains(t, err, `--certificate-secret: "keys" is also the Secret of --digest-key-secret`)
	complete(t, same...) // certificates are in files
}
