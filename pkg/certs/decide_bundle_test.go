package certs_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

func TestWithoutWebhookConfigurationNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := settled(t)
	c.without = true
	delete(c.data, "ca.key")
	prepare := c.decide(nil)
	require.Equal(t, certs.Prepare, prepare.Step)
	c.data = prepare.Data
	promote := c.decide(nil)
	assert.Equal(t, certs.Promote, promote.Step, "no API server trusts any CA")
	assert.Equal(t, "no webhook is configured that has to trust the next CA first", promote.Reason)
}

func TestBundleIsCorrected(t *testing.T) {
	t.Parallel()
	other := settled(t)
	tests := map[string]struct {
		change func(c *cluster)
		why    string
	}{
		"emptied":         {func(c *cluster) { c.bundle = nil }, "a GitOps tool took it back"},
		"no PEM":          {func(c *cluster) { c.bundle = []byte("\n") }, "a placeholder of a template"},
		"of another":      {func(c *cluster) { c.bundle = other.bundle }, "another installation of the same name"},
		"one twice":       {func(c *cluster) { c.bundle = append(c.bundle, append([]byte("\n"), c.bundle...)...) }, "each CA once"},
		"another besides": {func(c *cluster) { c.bundle = append(c.bundle, append([]byte("\n"), other.bundle...)...) }, "a CA that is not in the Secret is not trusted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settled(t)
			want := c.bundle
			tt.change(c)
			steps, _ := c.take()
			assert.Empty(t, steps, "the Secret is good")
			assert.Equal(t, string(want), string(c.bundle), tt.why)
		})
	}
}

// The Secret has two CAs during a rotation: a bundle with one of them, twice, has as many certificates.
func TestBundleWithOneCATwiceLacksTheOther(t *testing.T) {
	t.Parallel()
	c, other := settled(t), settled(t)
	c.data["old-ca.crt"] = other.data["ca.crt"]
	c.take()
	want := c.bundle
	c.bundle = append(bytes.Clone(other.bundle), append([]byte("\n"), other.bundle...)...)
	c.take()
	assert.Equal(t, string(want), string(c.bundle))
	c.requireTrusted()
}

// While an installation changes to the certificates of another program, both set the caBundle: neither must remove what the other
// needs, or calls would fail.
func TestSharedBundleKeepsTheCAsOfOthers(t *testing.T) {
	t.Parallel()
	c, other := settled(t), settled(t)
	own := c.bundle
	c.shared = true
	c.bundle = append(append(bytes.Clone(other.bundle), '\n'), own...)
	both := c.bundle
	steps, _ := c.take()
	assert.Empty(t, steps)
	assert.Equal(t, string(both), string(c.bundle), "nothing is missing")

	c.bundle = other.bundle
	c.take()
	c.requireTrusted()
	assert.True(t, policy.Trusted(other.data.Leaf(), [][]byte{c.bundle}, c.now), "the other program's certificate")

	c.shared = false
	c.take()
	assert.Equal(t, string(own), string(c.bundle), "not shared any more")
}

// cert-manager, or another installation, was there before: what the pods of then serve stays trusted until they are gone.
func TestCAOfBeforeStaysTrustedForAWhile(t *testing.T) {
	t.Parallel()
	before := settled(t)
	c := newCluster(t)
	c.bundle = before.bundle
	c.take()
	c.requireTrusted()
	require.True(t, policy.Trusted(before.data.Leaf(), [][]byte{c.bundle}, c.now), "both CAs are in the bundle")
	c.now = c.now.Add(day)
	steps, _ := c.take()
	assert.Equal(t, []certs.Step{certs.Drop}, steps)
	c.requireTrusted()
	assert.False(t, policy.Trusted(before.data.Leaf(), [][]byte{c.bundle}, c.now), "the CA of before is dropped from the bundle")
}
