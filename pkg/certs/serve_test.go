package certs_test

import (
	"crypto/tls"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

func TestReplicaRestoresWhatItServes(t *testing.T) {
	t.Parallel()
	c := settled(t)
	last := maps.Clone(c.data)
	for name, damaged := range map[string]certs.Data{"deleted": nil, "emptied": {}, "corrupt": {"ca.crt": []byte("x")}} {
		c.data = damaged
		decision := c.decide(last)
		assert.Equal(t, certs.Restore, decision.Step, name)
		assert.Equal(t, last, decision.Data, "%s: the API server trusts it", name)
		assert.Nil(t, decision.Bundle, "%s: it is as it should be", name)
	}
	c.now = start.Add(91 * day)
	assert.Equal(t, certs.Establish, c.decide(last).Step, "what is expired is of no use")
}

func TestServe(t *testing.T) {
	t.Parallel()
	ours, other := settled(t), settled(t)
	mine, stored := other.data.Leaf(), ours.data.Leaf()
	later := start.Add(91 * day)
	tests := map[string]struct {
		present, stored *tls.Certificate
		bundles         [][]byte
		now             time.Time
		want            *tls.Certificate
		why             string
	}{
		"nothing":           {nil, nil, nil, start, nil, "a first start"},
		"first":             {nil, stored, [][]byte{nil}, start, stored, "better than no answer; it is not ready yet"},
		"Secret broken":     {mine, nil, [][]byte{other.bundle}, start, mine, "the last good one"},
		"trusted":           {mine, stored, [][]byte{ours.bundle}, start, stored, "a renewal"},
		"not trusted yet":   {mine, stored, [][]byte{other.bundle}, start, mine, "calls would fail"},
		"none is trusted":   {mine, stored, [][]byte{nil}, start, stored, "it will be"},
		"one of two trusts": {mine, stored, [][]byte{ours.bundle, other.bundle}, start, stored, "neither is better"},
		"no configuration":  {mine, stored, nil, start, stored, "no call is made"},
		"present expired":   {mine, stored, [][]byte{other.bundle}, later, stored, "neither is better"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Same(t, tt.want, policy.Serve(tt.present, tt.stored, tt.bundles, tt.now), tt.why)
		})
	}
	assert.False(t, certs.Policy{Names: []string{"other.svc"}}.Trusted(stored, [][]byte{ours.bundle}, start), "for another name")
}
