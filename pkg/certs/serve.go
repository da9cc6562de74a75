package certs

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// Serve returns which of two certificates a replica serves: the one that it serves now, or that of the Secret. The one of the
// Secret is taken when the API server trusts it, or when there is nothing better. Both may be nil.
func (p Policy) Serve(present, stored *tls.Certificate, bundles [][]byte, now time.Time) *tls.Certificate {
	switch {
	case stored == nil:
		return present
	case present == nil, present.Leaf.Equal(stored.Leaf), len(bundles) == 0:
		return stored
	case p.Trusted(stored, bundles, now), !p.Trusted(present, bundles, now):
		return stored
	}
	return present
}

// Trusted reports whether all webhooks trust a certificate now.
func (p Policy) Trusted(pair *tls.Certificate, bundles [][]byte, now time.Time) bool {
	for _, bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		for _, name := range p.Names {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
				return false
			}
		}
	}
	return true
}

// InAll returns the certificates that all caBundles have.
func InAll(bundles [][]byte) []*x509.Certificate {
	if len(bundles) == 0 {
		return nil
	}
	all := readAll(bundles[0])
	for _, bundle := range bundles[1:] {
		var both []*x509.Certificate
		for _, c := range readAll(bundle) {
			if contains(all, c) {
				both = append(both, c)
			}
		}
		all = both
	}
	return all
}
