// Package certs decides how the certificates of the webhook are made and renewed where no other tool does it
// (--certificate-mode=self-managed).
//
// It is pure: given the content of the Secret, the caBundle of the webhook configuration and the time, it returns what has to be
// written next, and when to look again. Package rotate, below it, reads and writes. All replicas run it at the same time, without
// a leader: the webhook must serve before there is one. Each write is conditional on the version that the decision was made of,
// so that one replica wins and the others decide again.
//
// One Secret has the leaf, its CA, and during a rotation of the CA the next one and the earlier ones. The invariant is that a
// CA is in the caBundle before any leaf that it signed is served, and for as long as one may be served:
//
//	prepare  the next CA is added to the Secret; all replicas add it to the caBundle
//	promote  after the API servers had time to see it, the next CA becomes the CA and signs a leaf, in one write
//	drop     after all replicas had time to take the new leaf, the earlier CA is removed
//
// open-policy-agent/cert-controller, the library that others use for this, replaces CA and leaf in one write and the caBundle
// after it, so that calls fail in between; and it needs the Secret mounted as files, which a kubelet updates after a minute.
package certs

import (
	"crypto/x509"
	"time"
)

// The data keys of the Secret. tls.crt, tls.key and ca.crt have the names that cert-manager gives them.
const (
	keyLeaf       = "tls.crt"
	keyLeafKey    = "tls.key"
	keyCA         = "ca.crt"
	keyCAKey      = "ca.key"
	keyNextCA     = "next-ca.crt"
	keyNextCAKey  = "next-ca.key"
	keyEarlierCAs = "old-ca.crt"
)

// backdate is how long before its creation a certificate is valid, since clocks differ.
const backdate = time.Hour

// The waits between the steps of a rotation, with long-lived certificates. They are shorter with short-lived ones.
const (
	longestPropagation = 5 * time.Minute
	longestOverlap     = 24 * time.Hour
)

// Decide looks again after these times at the latest and at the earliest. The latest is for a watch that delivers nothing, so it
// is shorter than the overlap.
const (
	longestWait  = time.Hour
	shortestWait = 100 * time.Millisecond
)

// Policy says what the certificates must be like.
type Policy struct {
	// Names are the DNS names and IP addresses that the API server may ask for.
	Names []string
	// Lifetime is that of a leaf, CALifetime that of a CA, which must be at least three times as long: a CA is renewed when a
	// third of its lifetime is left, and every leaf that it signs must end before it.
	Lifetime, CALifetime time.Duration
}

// propagation is how long a CA must have been in the caBundle before it signs: all API servers watch the webhook configuration.
func (p Policy) propagation() time.Duration { return min(p.Lifetime/40, longestPropagation) }

// overlap is how long an earlier CA stays in the caBundle: all replicas watch the Secret, and one may have lost its watch.
func (p Policy) overlap() time.Duration { return min(p.Lifetime/10, longestOverlap) }

// due reports whether a certificate is to be replaced: a third of its lifetime is left, or it is valid for so much longer
// than it should be that the clock was wrong when it was made, or the lifetime was longer then.
func due(c *x509.Certificate, lifetime time.Duration, now time.Time) bool {
	return !now.Before(renewal(c, lifetime)) || c.NotAfter.Sub(now) > lifetime+lifetime/10
}

// renewal is when a certificate is replaced. One with a shorter lifetime is measured by its own: while an upgrade changes the lifetime,
// replicas have different ones, and would replace each other's certificates again and again.
func renewal(c *x509.Certificate, lifetime time.Duration) time.Time {
	own := c.NotAfter.Sub(c.NotBefore) - backdate
	return c.NotAfter.Add(-max(min(lifetime, own), 0) / 3)
}

// current reports whether a certificate is valid now.
func current(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}
