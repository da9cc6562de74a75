package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// Data is the content of the Secret.
type Data map[string][]byte

// authority is a CA of the Secret. The zero value is none.
type authority struct {
	certificate *x509.Certificate
	// key is nil where it is missing, unreadable, or belongs to another certificate.
	key crypto.Signer
}

// valid reports whether leaves of this CA can be trusted now.
func (a authority) valid(now time.Time) bool {
	return a.certificate != nil && a.certificate.IsCA && current(a.certificate, now)
}

// signs reports whether the CA can sign now.
func (a authority) signs(now time.Time) bool { return a.valid(now) && a.key != nil }

// content is the Secret as far as it can be read.
type content struct {
	signing, next authority
	earlier       []*x509.Certificate
	// leaf is nil where it is missing, unreadable, or its key belongs to another certificate.
	leaf *tls.Certificate
}

func read(d Data) content {
	return content{
		signing: readAuthority(d[keyCA], d[keyCAKey]),
		next:    readAuthority(d[keyNextCA], d[keyNextCAKey]),
		earlier: readAll(d[keyEarlierCAs]),
		leaf:    d.Leaf(),
	}
}

// Leaf returns the serving certificate with its key; nil if there is none that can be used.
func (d Data) Leaf() *tls.Certificate {
	pair, err := tls.X509KeyPair(d[keyLeaf], d[keyLeafKey])
	if err != nil {
		return nil
	}
	return &pair
}

// CA returns the certificate that signs; nil if there is none.
func (d Data) CA() *x509.Certificate { return readAuthority(d[keyCA], nil).certificate }

func readAuthority(certPEM, keyPEM []byte) authority {
	all := readAll(certPEM)
	if len(all) == 0 {
		return authority{}
	}
	a := authority{certificate: all[0]}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return a
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return a
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return a
	}
	public, ok := signer.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	if ok && public.Equal(a.certificate.PublicKey) {
		a.key = signer
	}
	return a
}

// readAll returns the certificates in a PEM text. What is no certificate is left out.
func readAll(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// write returns certificates as a PEM text.
func write(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return text.Bytes()
}

// contains reports whether a certificate is among others.
func contains(certificates []*x509.Certificate, wanted *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, wanted.Equal)
}

// same reports whether two lists have the same certificates, in whatever order.
func same(a, b []*x509.Certificate) bool {
	return len(a) == len(b) && containsAll(a, b) && containsAll(b, a)
}

func containsAll(certificates, wanted []*x509.Certificate) bool {
	return !slices.ContainsFunc(wanted, func(c *x509.Certificate) bool { return !contains(certificates, c) })
}

// union returns a and what of b it does not have.
func union(a, b []*x509.Certificate) []*x509.Certificate {
	all := slices.Clone(a)
	for _, c := range b {
		if !contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// distinct returns the CAs among certificates that are not expired, each once.
func distinct(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	for _, c := range certificates {
		if c != nil && c.IsCA && !now.After(c.NotAfter) && !contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}
