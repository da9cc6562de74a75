package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"time"
)

// Step names a write of the Secret.
type Step string

// The steps.
const (
	// None writes nothing.
	None Step = ""
	// Restore writes the content again that this replica has in memory.
	Restore Step = "restore"
	// Establish makes a CA and a leaf at once, because there is nothing that could be served.
	Establish Step = "establish"
	// Sign makes a leaf.
	Sign Step = "sign"
	// Prepare makes the next CA, which does not sign yet.
	Prepare Step = "prepare"
	// Promote makes the next CA the one that signs.
	Promote Step = "promote"
	// Drop removes earlier CAs.
	Drop Step = "drop"
)

// Fingerprint identifies a certificate.
type Fingerprint [sha256.Size]byte

// Input is what a decision is made of. The caBundles must have been read before the Secret: a CA is in the Secret before it
// is in a caBundle, so that what is in a caBundle and not in the Secret is not wanted any more.
type Input struct {
	// Data is the content of the Secret; nil if there is none.
	Data Data
	// Last is the content that this replica has served last; nil if it has served none.
	Last Data
	// Bundles are the caBundles of the webhook configuration, one for each webhook; none if it does not exist.
	Bundles [][]byte
	// Shared says that another program or a user sets the caBundles as well, as while an installation changes to certificates of
	// theirs: CAs of others then stay.
	Shared bool
	// TrustedFor says for how long each CA has been in all caBundles, as far as this replica has seen it.
	TrustedFor map[Fingerprint]time.Duration
	// Now is the time of the API server, which verifies the certificates.
	Now time.Time
}

// Decision is what has to be written. The Secret and the webhook configuration are written independently of each other.
type Decision struct {
	Step   Step
	Reason string
	// Data is the new content of the Secret; nil without a Step.
	Data Data
	// Bundle is what all caBundles have to be; nil if they are.
	Bundle []byte
	// Wait is the time after which to decide again if nothing is written and nothing changes.
	Wait time.Duration
}

// view is an Input, parsed.
type view struct {
	Policy
	Input
	content
	bundles [][]*x509.Certificate
	random  io.Reader
}

// Decide returns the next step. The rules come in order of urgency; each returns nil if it has nothing to do.
func (p Policy) Decide(s Input, random io.Reader) (Decision, error) {
	v := view{Policy: p, Input: s, content: read(s.Data), random: random}
	for _, bundle := range s.Bundles {
		v.bundles = append(v.bundles, readAll(bundle))
	}
	decision := Decision{Bundle: v.wantedBundle(), Wait: v.wait()}
	for _, rule := range []func() (*change, error){v.restore, v.establish, v.sign, v.promote, v.prepare, v.drop} {
		c, err := rule()
		if err != nil {
			return Decision{}, err
		}
		if c != nil {
			decision.Step, decision.Reason, decision.Data = c.step, c.reason, c.data
			break
		}
	}
	return decision, nil
}

// change is a Decision about the Secret.
type change struct {
	step   Step
	reason string
	data   Data
}

// broken says why nothing in the Secret can be served; empty if something can.
func (v view) broken() string {
	switch ca := v.signing; {
	case v.Data == nil:
		return "the Secret does not exist"
	case ca.certificate == nil:
		return "the Secret has no CA"
	case !ca.valid(v.Now):
		return "the CA is not valid now"
	case ca.key == nil && v.unusable() != "":
		return "the CA has no key, and " + v.unusable()
	}
	return ""
}

// unusable says why the leaf cannot be served; empty if it can.
func (v view) unusable() string {
	if reason := v.invalid(); reason != "" {
		return reason
	}
	for _, name := range v.Names {
		if v.leaf.Leaf.VerifyHostname(name) != nil {
			return "the certificate is not for " + name
		}
	}
	return ""
}

// invalid says why the leaf cannot be served under any name; empty if it can.
func (v view) invalid() string {
	if v.leaf == nil {
		return "there is no certificate with its key"
	}
	leaf := v.leaf.Leaf
	if !current(leaf, v.Now) {
		return "the certificate is not valid now"
	}
	if v.signing.certificate == nil || leaf.CheckSignatureFrom(v.signing.certificate) != nil {
		return "the CA has not signed the certificate"
	}
	return ""
}

// restore keeps what the API server trusts, if the Secret was deleted or damaged while a replica runs.
func (v view) restore() (*change, error) {
	reason := v.broken()
	if reason == "" {
		return nil, nil
	}
	last := v
	last.Data, last.content = v.Last, read(v.Last)
	if last.broken() != "" || last.unusable() != "" {
		return nil, nil
	}
	return &change{Restore, reason, maps.Clone(v.Last)}, nil
}

// establish starts again. All CAs in sight stay trusted: replicas may serve a certificate of theirs, also that of cert-manager
// before this mode was chosen.
func (v view) establish() (*change, error) {
	reason := v.broken()
	if reason == "" {
		return nil, nil
	}
	signing := v.next
	if !signing.signs(v.Now) {
		var err error
		if signing, err = v.newAuthority(v.Now, v.random); err != nil {
			return nil, err
		}
	}
	earlier := append([]*x509.Certificate{v.signing.certificate, v.next.certificate}, v.earlier...)
	for _, bundle := range v.bundles {
		earlier = append(earlier, bundle...)
	}
	return v.begin(Establish, reason, signing, earlier)
}

// begin makes a CA the one that signs.
func (v view) begin(step Step, reason string, signing authority, earlier []*x509.Certificate) (*change, error) {
	data := Data{}
	if err := data.put(keyCA, keyCAKey, signing); err != nil {
		return nil, err
	}
	if err := v.issue(data, signing, v.Now, v.random); err != nil {
		return nil, err
	}
	var kept []*x509.Certificate
	for _, c := range distinct(earlier, v.Now) {
		if !c.Equal(signing.certificate) {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 {
		data[keyEarlierCAs] = write(kept)
	}
	return &change{step, reason, data}, nil
}

// sign makes a leaf when there is none, or the present one is due. One that only lacks a name keeps its names until it is due: while an
// upgrade changes the names, replicas have different ones, and would replace each other's certificates again and again.
func (v view) sign() (*change, error) {
	reason, policy := v.unusable(), v.Policy
	switch {
	case reason != "" && v.invalid() == "":
		policy.Names = withNamesOf(v.leaf.Leaf, v.Names)
	case reason == "" && due(v.leaf.Leaf, v.Lifetime, v.Now) && v.leaf.Leaf.NotAfter.Before(v.signing.certificate.NotAfter):
		reason = "the certificate is due for renewal"
	}
	if reason == "" || !v.signing.signs(v.Now) {
		return nil, nil
	}
	data := maps.Clone(v.Data)
	if err := policy.issue(data, v.signing, v.Now, v.random); err != nil {
		return nil, err
	}
	return &change{Sign, reason, data}, nil
}

// renewalReason says why another CA has to sign; empty if the present one may go on.
func (v view) renewalReason() string {
	switch {
	case v.signing.key == nil:
		return "the CA has no key"
	case due(v.signing.certificate, v.CALifetime, v.Now):
		return "the CA is due for renewal"
	}
	return ""
}

// prepare makes the next CA.
func (v view) prepare() (*change, error) {
	reason := v.renewalReason()
	if reason == "" || v.next.signs(v.Now) {
		return nil, nil
	}
	next, err := v.newAuthority(v.Now, v.random)
	if err != nil {
		return nil, err
	}
	data := maps.Clone(v.Data)
	if err := data.put(keyNextCA, keyNextCAKey, next); err != nil {
		return nil, err
	}
	return &change{Prepare, reason, data}, nil
}

// promote lets the next CA sign, when all API servers trust it.
func (v view) promote() (*change, error) {
	if !v.next.signs(v.Now) || v.Now.Before(v.promotion()) {
		return nil, nil
	}
	reason := fmt.Sprintf("the next CA has been trusted for %s", v.propagation())
	if len(v.bundles) == 0 {
		reason = "no webhook is configured that has to trust the next CA first"
	}
	return v.begin(Promote, reason, v.next, append([]*x509.Certificate{v.signing.certificate}, v.earlier...))
}

// promotion is when the next CA may sign. Without a webhook configuration there is no caBundle to wait for.
func (v view) promotion() time.Time {
	if len(v.bundles) == 0 {
		return v.Now
	}
	trusted, seen := v.TrustedFor[Identify(v.next.certificate)]
	if !seen {
		return v.Now.Add(longestWait)
	}
	return v.Now.Add(v.propagation() - trusted)
}

// drop removes the earlier CAs when all replicas serve a leaf of the present one.
func (v view) drop() (*change, error) {
	if _, has := v.Data[keyEarlierCAs]; !has || v.Now.Before(v.dropping()) || !v.trusts(v.signing.certificate) {
		return nil, nil
	}
	data := maps.Clone(v.Data)
	delete(data, keyEarlierCAs)
	return &change{Drop, fmt.Sprintf("no replica serves a certificate signed by an earlier CA after %s", v.overlap()), data}, nil
}

// dropping is when the earlier CAs go, counted from the present leaf.
func (v view) dropping() time.Time { return v.leaf.Leaf.NotBefore.Add(backdate + v.overlap()) }

// trusts reports whether a CA is in all caBundles, of which there may be none.
func (v view) trusts(ca *x509.Certificate) bool {
	for _, bundle := range v.bundles {
		if !contains(bundle, ca) {
			return false
		}
	}
	return true
}

// wantedBundle returns what the caBundles have to be; nil if they are, or if it is not known.
func (v view) wantedBundle() []byte {
	if v.broken() != "" {
		return nil
	}
	own := distinct(append([]*x509.Certificate{v.signing.certificate, v.next.certificate}, v.earlier...), v.Now)
	for _, bundle := range v.bundles {
		wanted := own
		if v.Shared {
			wanted = union(bundle, own)
		}
		if !same(bundle, wanted) {
			return bytes.TrimSpace(write(wanted))
		}
	}
	return nil
}

// wait is the time until something is due.
func (v view) wait() time.Duration {
	wait := min(longestWait, v.overlap()/2)
	until := func(t time.Time) {
		// What is due and not done waits for something else.
		if d := t.Sub(v.Now); d > 0 {
			wait = min(wait, d)
		}
	}
	if v.broken() == "" && v.leaf != nil {
		until(renewal(v.leaf.Leaf, v.Lifetime))
		until(renewal(v.signing.certificate, v.CALifetime))
		if v.next.signs(v.Now) {
			until(v.promotion())
		}
		until(v.dropping())
	}
	return max(wait, shortestWait)
}

// Identify returns the fingerprint of a certificate.
func Identify(c *x509.Certificate) Fingerprint { return sha256.Sum256(c.Raw) }
