package certs_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

const (
	day  = 24 * time.Hour
	name = "pod-reloader.pod-reloader.svc"
)

var (
	policy = certs.Policy{Names: []string{name}, Lifetime: 90 * day, CALifetime: 5 * 365 * day}
	start  = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

// cluster is the Secret and the caBundle of one webhook, with the time.
type cluster struct {
	t      *testing.T
	policy certs.Policy
	data   certs.Data
	bundle []byte
	// trusted says since when a CA has been in the caBundle.
	trusted map[certs.Fingerprint]time.Time
	now     time.Time
	// without is set while there is no webhook configuration.
	without bool
	// shared is set while another program sets the caBundle as well.
	shared bool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{t: t, policy: policy, now: start, trusted: map[certs.Fingerprint]time.Time{}}
}

func (c *cluster) bundles() [][]byte {
	if c.without {
		return nil
	}
	return [][]byte{c.bundle}
}

// decide asks for the next step, without taking it.
func (c *cluster) decide(last certs.Data) certs.Decision {
	c.t.Helper()
	trusted := map[certs.Fingerprint]time.Duration{}
	for _, ca := range certs.InAll(c.bundles()) {
		id := certs.Identify(ca)
		if _, seen := c.trusted[id]; !seen {
			c.trusted[id] = c.now
		}
		trusted[id] = c.now.Sub(c.trusted[id])
	}
	decision, err := c.policy.Decide(certs.Input{
		Data: c.data, Last: last, Bundles: c.bundles(), Shared: c.shared, TrustedFor: trusted, Now: c.now,
	}, rand.Reader)
	require.NoError(c.t, err)
	return decision
}

// take takes steps until there is nothing left to do now, and returns the steps and the wait.
func (c *cluster) take() ([]certs.Step, time.Duration) {
	c.t.Helper()
	steps := []certs.Step{}
	for range 10 {
		decision := c.decide(nil)
		if decision.Step == certs.None && decision.Bundle == nil {
			return steps, decision.Wait
		}
		if decision.Step != certs.None {
			steps = append(steps, decision.Step)
			require.NotEmpty(c.t, decision.Reason)
			c.data = decision.Data
		}
		if decision.Bundle != nil {
			c.bundle = decision.Bundle
		}
	}
	require.Fail(c.t, "there is always something to do", "%v", steps)
	return nil, 0
}

// settled is a cluster in which everything is done.
func settled(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	steps, _ := c.take()
	require.Equal(t, []certs.Step{certs.Establish}, steps)
	c.now = c.now.Add(time.Minute)
	return c
}

// requireTrusted requires that what is in the Secret can be served.
func (c *cluster) requireTrusted() {
	c.t.Helper()
	require.NotNil(c.t, c.data.Leaf())
	require.True(c.t, policy.Trusted(c.data.Leaf(), [][]byte{c.bundle}, c.now), "a CA of the bundle has signed the certificate")
}

func TestFirstReplicaMakesCAAndLeaf(t *testing.T) {
	t.Parallel()
	c := settled(t)
	c.requireTrusted()
	leaf, ca := c.data.Leaf().Leaf, c.data.CA()
	assert.Equal(t, start.Add(90*day), leaf.NotAfter)
	assert.Equal(t, start.Add(5*365*day), ca.NotAfter)
	assert.Equal(t, start.Add(-time.Hour), leaf.NotBefore, "clocks differ")
	assert.False(t, leaf.IsCA, "a stolen serving key must not sign")
	assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, leaf.ExtKeyUsage)
	assert.Len(t, certs.InAll([][]byte{c.bundle}), 1)
	steps, wait := c.take()
	assert.Empty(t, steps)
	assert.Equal(t, time.Hour, wait, "it looks again even if no watch delivers anything")
}

func TestCertificateIsForAddressesToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.policy.Names = []string{"10.0.0.1", "2001:db8::1", name}
	c.take()
	for _, name := range c.policy.Names {
		require.NoError(t, c.data.Leaf().Leaf.VerifyHostname(name))
	}
	require.True(t, c.policy.Trusted(c.data.Leaf(), [][]byte{c.bundle}, c.now), "the certificate is valid for all names")
	steps, _ := c.take()
	assert.Empty(t, steps, "it is not made again and again")
}

// What a decision is about the Secret alone, for every state that it may be in.
func TestDecideByTheStateOfTheSecret(t *testing.T) {
	t.Parallel()
	other := settled(t).data
	tests := map[string]struct {
		change func(c *cluster)
		want   certs.Step
		reason string
		why    string
	}{
		"complete":                 {func(*cluster) {}, certs.None, "", "nothing is due"},
		"missing":                  {func(c *cluster) { c.data = nil }, certs.Establish, "the Secret does not exist", "the first start"},
		"empty":                    {func(c *cluster) { c.data = certs.Data{} }, certs.Establish, "the Secret has no CA", "rendered by another tool"},
		"CA missing":               {func(c *cluster) { delete(c.data, "ca.crt") }, certs.Establish, "the Secret has no CA", "nothing says what to trust"},
		"CA corrupt":               {func(c *cluster) { c.data["ca.crt"] = []byte("x") }, certs.Establish, "the Secret has no CA", "as if it were missing"},
		"CA half-written":          {func(c *cluster) { c.data["ca.crt"] = c.data["ca.crt"][:200] }, certs.Establish, "the Secret has no CA", "as if it were missing"},
		"CA is a leaf":             {func(c *cluster) { c.data["ca.crt"] = c.data["tls.crt"] }, certs.Establish, "the CA is not valid now", "it may not sign"},
		"CA of another":            {func(c *cluster) { c.data["ca.crt"] = other["ca.crt"] }, certs.Establish, "the CA has no key, and the CA has not signed the certificate", "three parts that do not belong together"},
		"CA key missing":           {func(c *cluster) { delete(c.data, "ca.key") }, certs.Prepare, "the CA has no key", "the leaf is good; a new CA comes without a gap"},
		"CA key corrupt":           {func(c *cluster) { c.data["ca.key"] = []byte("x") }, certs.Prepare, "the CA has no key", "the same"},
		"CA key of another":        {func(c *cluster) { c.data["ca.key"] = other["ca.key"] }, certs.Prepare, "the CA has no key", "the same"},
		"CA key and leaf missing":  {func(c *cluster) { delete(c.data, "ca.key"); delete(c.data, "tls.crt") }, certs.Establish, "the CA has no key, and there is no certificate with its key", "nothing can be served or signed"},
		"leaf missing":             {func(c *cluster) { delete(c.data, "tls.crt") }, certs.Sign, "there is no certificate with its key", "the CA signs another"},
		"leaf corrupt":             {func(c *cluster) { c.data["tls.crt"] = []byte("x") }, certs.Sign, "there is no certificate with its key", "the same"},
		"leaf key missing":         {func(c *cluster) { delete(c.data, "tls.key") }, certs.Sign, "there is no certificate with its key", "the same"},
		"leaf key of another":      {func(c *cluster) { c.data["tls.key"] = other["tls.key"] }, certs.Sign, "there is no certificate with its key", "the same"},
		"leaf of another CA":       {func(c *cluster) { c.data["tls.crt"], c.data["tls.key"] = other["tls.crt"], other["tls.key"] }, certs.Sign, "the CA has not signed the certificate", "the API server would not trust it"},
		"leaf for another name":    {func(c *cluster) { c.policy.Names = []string{name, "other.pod-reloader.svc"} }, certs.Sign, "the certificate is not for other.pod-reloader.svc", "the Service was renamed"},
		"leaf for more names":      {func(c *cluster) { c.policy.Names = nil }, certs.None, "", "two versions must not fight during an upgrade"},
		"leaf due":                 {func(c *cluster) { c.now = start.Add(60 * day) }, certs.Sign, "the certificate is due for renewal", "a third of the lifetime is left to repair what prevents it"},
		"leaf not due":             {func(c *cluster) { c.now = start.Add(60*day - time.Minute) }, certs.None, "", "not before"},
		"leaf expired":             {func(c *cluster) { c.now = start.Add(91 * day) }, certs.Sign, "the certificate is not valid now", "all replicas were down"},
		"CA expired":               {func(c *cluster) { c.now = start.Add(6 * 365 * day) }, certs.Establish, "the CA is not valid now", "all replicas were down"},
		"clock an hour back":       {func(c *cluster) { c.now = start.Add(-59 * time.Minute) }, certs.None, "", "certificates begin an hour before they are made"},
		"clock a day back":         {func(c *cluster) { c.now = start.Add(-day) }, certs.Establish, "the CA is not valid now", "nothing is valid then"},
		"lifetime shortened":       {func(c *cluster) { c.policy.Lifetime = day }, certs.Sign, "the certificate is due for renewal", "the new lifetime counts at once"},
		"CA lifetime shortened":    {func(c *cluster) { c.policy.CALifetime = 365 * day }, certs.Prepare, "the CA is due for renewal", "the same"},
		"next CA without its key":  {func(c *cluster) { delete(c.data, "ca.key"); c.data["next-ca.crt"] = other["ca.crt"] }, certs.Prepare, "the CA has no key", "half of a next CA is of no use"},
		"earlier CAs are no PEM":   {func(c *cluster) { c.data["old-ca.crt"] = []byte("x"); c.now = start.Add(2 * day) }, certs.Drop, "no replica serves a certificate signed by an earlier CA after 24h0m0s", "they go like others"},
		"unknown key in the data":  {func(c *cluster) { c.data["note"] = []byte("x") }, certs.None, "", "it is left alone"},
		"CA expired, next is good": {func(c *cluster) { c.now = start.Add(6 * 365 * day); withNext(c) }, certs.Establish, "the CA is not valid now", "the next CA is used"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settled(t)
			c.data = maps.Clone(c.data)
			tt.change(c)
			decision := c.decide(nil)
			assert.Equal(t, tt.want, decision.Step, tt.why)
			assert.Equal(t, tt.reason, decision.Reason, tt.why)
			if tt.want == certs.None {
				assert.Nil(t, decision.Data)
				return
			}
			c.take()
			c.requireTrusted()
		})
	}
}

// withNext adds a next CA that is valid at the time of the cluster.
func withNext(c *cluster) {
	later := newCluster(c.t)
	later.now = c.now
	later.take()
	c.data["next-ca.crt"], c.data["next-ca.key"] = later.data["ca.crt"], later.data["ca.key"]
}

func TestExpiredCAIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	c := settled(t)
	c.now = start.Add(6 * 365 * day)
	withNext(c)
	next := c.data["next-ca.crt"]
	c.take()
	assert.Equal(t, next, c.data["ca.crt"])
	c.requireTrusted()
}

// At every step of a rotation, what any replica may serve is trusted: the leaf of the Secret, and the one before.
func TestRotationOfTheCA(t *testing.T) {
	t.Parallel()
	c := settled(t)
	first, leaf := c.data.CA(), c.data.Leaf()
	// The leaf is renewed first, so that only the CA is due.
	c.now = first.NotAfter.Add(-policy.CALifetime/3 - day)
	steps, wait := c.take()
	require.Equal(t, []certs.Step{certs.Sign}, steps)
	require.Equal(t, time.Hour, wait)
	before := c.data.Leaf()
	require.NotEqual(t, leaf.Leaf.Raw, before.Leaf.Raw)

	c.now = c.now.Add(day)
	steps, wait = c.take()
	require.Equal(t, []certs.Step{certs.Prepare}, steps)
	assert.Equal(t, 5*time.Minute, wait, "until the next CA signs")
	assert.True(t, first.Equal(c.data.CA()), "it does not sign yet")
	assert.Len(t, certs.InAll([][]byte{c.bundle}), 2, "and is trusted already")

	c.now = c.now.Add(5*time.Minute - time.Millisecond)
	steps, wait = c.take()
	require.Empty(t, steps)
	assert.Equal(t, 100*time.Millisecond, wait, "not again and again")
	c.now = c.now.Add(time.Millisecond)
	steps, _ = c.take()
	require.Equal(t, []certs.Step{certs.Promote}, steps)
	assert.False(t, first.Equal(c.data.CA()), "the CA is another one")
	c.requireTrusted()
	require.True(t, policy.Trusted(before, [][]byte{c.bundle}, c.now), "a replica may still serve it")

	c.now = c.now.Add(day - time.Second)
	steps, wait = c.take()
	require.Empty(t, steps)
	assert.Equal(t, time.Second, wait)
	c.now = c.now.Add(time.Second)
	both := c.bundle
	c.bundle = c.data["old-ca.crt"]
	assert.Equal(t, certs.None, c.decide(nil).Step, "while calls need the earlier CA, it stays")
	c.bundle = both
	steps, _ = c.take()
	require.Equal(t, []certs.Step{certs.Drop}, steps)
	c.requireTrusted()
	assert.Len(t, certs.InAll([][]byte{c.bundle}), 1)
	assert.NotContains(t, c.data, "old-ca.crt")
}

func TestNextCAWaitsUntilItIsTrusted(t *testing.T) {
	t.Parallel()
	c := settled(t)
	delete(c.data, "ca.key")
	old := c.bundle
	c.take()
	c.now = c.now.Add(4 * time.Minute)
	// Another writer takes the next CA away, and the time counts again.
	c.bundle, c.trusted = old, map[certs.Fingerprint]time.Time{}
	steps, _ := c.take()
	require.Empty(t, steps)
	c.now = c.now.Add(4 * time.Minute)
	steps, _ = c.take()
	require.Empty(t, steps)
	c.now = c.now.Add(time.Minute)
	steps, _ = c.take()
	require.Equal(t, []certs.Step{certs.Promote}, steps)
}

func TestShortLifetimesShortenTheWaits(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.policy.Lifetime, c.policy.CALifetime = time.Minute, 3*time.Minute
	c.take()
	delete(c.data, "ca.key")
	_, wait := c.take()
	assert.Equal(t, 1500*time.Millisecond, wait)
	c.now = c.now.Add(wait)
	_, wait = c.take()
	assert.Equal(t, 3*time.Second, wait, "half of the overlap, in case no watch delivers anything")
	c.now = c.now.Add(3 * wait)
	steps, _ := c.take()
	assert.Equal(t, []certs.Step{certs.Drop}, steps)
}

// During an upgrade that changes the lifetimes, some replicas have the former lifetimes: they must not replace each other's certificates
// again and again.
func TestReplicasWithDifferentLifetimesAgree(t *testing.T) {
	t.Parallel()
	short, shortCA := policy, policy
	short.Lifetime, shortCA.CALifetime = day, 365*day
	tests := map[string]struct {
		before, after certs.Policy
		age           time.Duration
		want          []certs.Step
		why           string
	}{
		"shortened":                {policy, short, time.Minute, []certs.Step{certs.Sign}, "the new lifetime counts at once"},
		"lengthened":               {short, policy, time.Minute, nil, "the next certificate has the new lifetime"},
		"lengthened, not yet due":  {short, policy, 15*time.Hour + 25*time.Minute, nil, "its own lifetime counts"},
		"lengthened, due":          {short, policy, 17 * time.Hour, []certs.Step{certs.Sign, certs.Sign}, "it is too long for the former replicas"},
		"CA shortened":             {policy, shortCA, time.Minute, []certs.Step{certs.Prepare, certs.Promote}, "as with the certificate"},
		"CA lengthened":            {shortCA, policy, time.Minute, nil, "the same"},
		"shortened a little":       {policy, certs.Policy{Names: policy.Names, Lifetime: 85 * day, CALifetime: policy.CALifetime}, time.Minute, nil, "the next certificate has it"},
		"shortened when it is due": {policy, short, 61 * day, []certs.Step{certs.Sign}, "once"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.policy = tc.before
			c.take()
			c.now = c.now.Add(tc.age)
			var all []certs.Step
			for range 4 {
				for _, c.policy = range []certs.Policy{tc.after, tc.before} {
					steps, _ := c.take()
					all = append(all, steps...)
				}
				c.now = c.now.Add(10 * time.Minute)
			}
			assert.Equal(t, tc.want, all, tc.why)
		})
	}
}

// FuzzDecide: no content of the Secret and of the caBundle makes it panic, and what it writes can be served.
func FuzzDecide(f *testing.F) {
	f.Add([]byte("ca.crt"), []byte("ca.key"), []byte("tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}))
	f.Fuzz(func(t *testing.T, ca, key, leaf, bundle []byte) {
		c := newCluster(t)
		c.data = certs.Data{"ca.crt": ca, "ca.key": key, "tls.crt": leaf, "next-ca.crt": leaf, "old-ca.crt": bundle}
		c.bundle = bundle
		c.take()
		c.requireTrusted()
	})
}
