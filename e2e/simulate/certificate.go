package simulate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// certificateName is the DNS name of the webhook's Service.
const certificateName = "pod-reloader.pod-reloader.svc"

// certificate is what the replicas serve with. One is enough for all simulations of a process: making it takes longer than
// everything else at the start.
type certificate struct {
	cert, key []byte
	roots     *x509.CertPool
}

// newCertificate makes one that is valid in fake time too, which begins in the year 2000.
func newCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: certificateName}, DNSNames: []string{certificateName},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &certificate{
		cert:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		roots: x509.NewCertPool(),
	}
	c.roots.AppendCertsFromPEM(c.cert)
	return c, nil
}

// read is app.Host.ReadFile.
func (c *certificate) read(path string) ([]byte, error) {
	switch filepath.Base(path) {
	case "tls.crt":
		return c.cert, nil
	case "tls.key":
		return c.key, nil
	default:
		return nil, os.ErrNotExist
	}
}
