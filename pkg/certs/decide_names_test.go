package certs_test

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

// names returns those of a leaf.
func names(leaf *x509.Certificate) []string {
	all := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// During an upgrade that changes the names, some replicas have the former ones: they must not replace each other's certificates again and
// again.
func TestReplicasWithDifferentNamesAgree(t *testing.T) {
	t.Parallel()
	const first, second, address = "first.pod-reloader.svc", "second.pod-reloader.svc", "10.0.0.1"
	for name, tc := range map[string]struct {
		before, after []string
		age           time.Duration
		want          []certs.Step
		why           string
	}{
		"changed":           {[]string{first}, []string{second}, time.Minute, []certs.Step{certs.Sign}, "one certificate is for both"},
		"changed when due":  {[]string{first}, []string{second}, 61 * day, []certs.Step{certs.Sign}, "the same"},
		"changed, expired":  {[]string{first}, []string{second}, 91 * day, []certs.Step{certs.Sign, certs.Sign}, "the first has no former names"},
		"address, and more": {[]string{address}, []string{first, second}, time.Minute, []certs.Step{certs.Sign}, "addresses are names"},
		"added":             {[]string{first}, []string{first, second}, time.Minute, []certs.Step{certs.Sign}, "each name once"},
		"removed":           {[]string{first, second}, []string{first}, time.Minute, nil, "the next certificate lacks it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.policy.Names = tc.before
			c.take()
			c.now = c.now.Add(tc.age)
			var all []certs.Step
			for range 4 {
				for _, c.policy.Names = range [][]string{tc.after, tc.before} {
					steps, _ := c.take()
					all = append(all, steps...)
				}
			}
			assert.Equal(t, tc.want, all, tc.why)
			for _, name := range slices.Concat(tc.before, tc.after) {
				require.NoError(t, c.data.Leaf().Leaf.VerifyHostname(name))
			}
			c.now = c.now.Add(61 * day)
			c.policy.Names = tc.after
			c.take()
			assert.ElementsMatch(t, tc.after, names(c.data.Leaf().Leaf), "the next certificate has no former names")
		})
	}
}
