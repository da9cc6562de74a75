package serve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// authority signs the certificates of clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// client returns a certificate for a use that ends so long from now.
func (a authority) client(t *testing.T, name string, use x509.ExtKeyUsage, left time.Duration) []tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{use},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left),
	}, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
}

// call makes one request on a connection of its own and returns the status, or the error of the connection.
func call(t *testing.T, url string, certificates []tls.Certificate) (int, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true,
		// Whatever authorities the server names.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certificates[0], nil
		},
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(nil))
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// guarded serves admission for callers with a certificate of the authority only.
func guarded(t *testing.T, file string, names ...string) (url string, c *Callers) {
	t.Helper()
	o := options.Webhook{MinTLSVersion: tls.VersionTLS13, HTTP2: true, ClientCA: file, ClientNames: names, Address: freeAddress(t)}
	c = NewCallers(o, prometheus.NewRegistry())
	a, err := NewAdmission(o, loaded(t), c.RequireCertificate(noContent), c.Configure)
	require.NoError(t, err)
	start(t, a)
	require.Eventually(t, func() bool { return a.Serving() == nil }, patience, 10*time.Millisecond, "it asks itself without a certificate")
	return "https://" + o.Address + "/mutate", c
}

func TestCallersNeedACertificateOfTheAuthority(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, ours.pem(), 0o600))
	url, c := guarded(t, file, "kube-apiserver")

	before := testutil.ToFloat64(c.refused)
	status, err := call(t, url, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, status, "no certificate")
	for why, certificates := range map[string][]tls.Certificate{
		"another authority": other.client(t, "kube-apiserver", x509.ExtKeyUsageClientAuth, time.Hour),
		"another name":      ours.client(t, "pod", x509.ExtKeyUsageClientAuth, time.Hour),
		"another use":       ours.client(t, "kube-apiserver", x509.ExtKeyUsageServerAuth, time.Hour),
		"expired":           ours.client(t, "kube-apiserver", x509.ExtKeyUsageClientAuth, -time.Minute),
	} {
		_, err := call(t, url, certificates)
		assert.Error(t, err, why)
	}
	assert.InDelta(t, 5, testutil.ToFloat64(c.refused)-before, 0, "each is counted")

	status, err = call(t, url, ours.client(t, "kube-apiserver", x509.ExtKeyUsageClientAuth, time.Hour))
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, status)
}

func TestAnyNameIsAcceptedWithoutNames(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, ours.pem(), 0o600))
	url, _ := guarded(t, file)
	status, err := call(t, url, ours.client(t, "any", x509.ExtKeyUsageClientAuth, time.Hour))
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, status)
}

func TestClientAuthorityIsReadAgain(t *testing.T) {
	t.Parallel()
	first, second := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, []byte("none"), 0o600))
	url, c := guarded(t, file)
	assert.ErrorContains(t, c.Valid(), "has no certificate in PEM form")
	certificate := second.client(t, "kube-apiserver", x509.ExtKeyUsageClientAuth, time.Hour)
	_, err := call(t, url, certificate)
	require.Error(t, err, "without an authority no certificate is accepted")

	require.NoError(t, os.WriteFile(file, append(first.pem(), second.pem()...), 0o600))
	require.NoError(t, c.Valid())
	status, err := call(t, url, certificate)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, status, "both are accepted during a rotation")

	require.NoError(t, os.WriteFile(file, first.pem(), 0o600))
	_, err = call(t, url, certificate)
	require.Error(t, err)
	require.NoError(t, os.Remove(file))
	assert.ErrorContains(t, c.Valid(), "read --webhook-client-ca")
}
