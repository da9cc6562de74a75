package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"
)

// newAuthority makes a CA.
func (p Policy) newAuthority(now time.Time, random io.Reader) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return authority{}, fmt.Errorf("make the key of a CA: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "pod-reloader-ca"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(p.CALifetime),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("sign a CA: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, fmt.Errorf("read a new CA: %w", err)
	}
	return authority{certificate: certificate, key: key}, nil
}

// issue makes a leaf, and puts it into the data.
func (p Policy) issue(d Data, by authority, now time.Time, random io.Reader) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return fmt.Errorf("make the key of a certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "pod-reloader-webhook"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(p.Lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range p.Names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if end := by.certificate.NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	der, err := x509.CreateCertificate(random, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return fmt.Errorf("sign a certificate: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	d[keyLeaf], d[keyLeafKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM
	return nil
}

// withNamesOf returns names and those of a leaf, each once.
func withNamesOf(leaf *x509.Certificate, names []string) []string {
	all := slices.Concat(names, leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// put puts a CA into the data.
func (d Data) put(certificate, key string, a authority) error {
	d[certificate] = write([]*x509.Certificate{a.certificate})
	delete(d, key)
	if a.key == nil {
		return nil
	}
	keyPEM, err := encodeKey(a.key)
	if err != nil {
		return err
	}
	d[key] = keyPEM
	return nil
}

func encodeKey(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
