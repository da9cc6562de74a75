package chain_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// What is not handled is not watched: as a part of the digest, a change of it would be noticed at the next start only.
func TestKindsThatAreNotHandledAreNotRead(t *testing.T) {
	t.Parallel()
	cm := reference.Ref{Kind: reference.ConfigMap, Name: "c"}
	ignored := []string{"referents[0].refs[0] (to: secrets)"}
	for name, c := range map[string]struct {
		without []reference.Kind
		ignored []string
		changed reference.Ref
		counts  bool
	}{
		"all are handled, a Secret":    {nil, nil, tls, true},
		"without Secrets, a Secret":    {[]reference.Kind{reference.Secret}, ignored, tls, false},
		"without Secrets, a ConfigMap": {[]reference.Kind{reference.Secret}, ignored, cm, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, chain.Options{Without: c.without})
				w.contents[tls], w.contents[cm] = "1", "1"
				w.put(services, "s", map[string]any{"secret": "tls", "config": "c"})
				w.put(proxies, "p", map[string]any{"service": "s"})
				definitions := proxyToSecret()
				definitions[0].Refs = append(definitions[0].Refs, referent.EdgeDefinition{Resource: "configmaps", Name: "spec.config"})
				assert.Equal(t, c.ignored, w.Configure(definitions))
				w.pass(time.Second)
				before := w.entry()
				assert.Equal(t, c.without == nil, slices.Contains(w.Referred()["ns"], tls))
				fresh := func() map[digest.KeyID]digest.Entry {
					states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
					require.NoError(t, err)
					assert.Nil(t, states[proxy].Hold)
					return states[proxy].Entries
				}
				asked := fresh()
				assert.Equal(t, w.State("ns", proxy).Entries, asked, "the webhook computes the same digest")

				w.set(c.changed, "2")
				w.pass(time.Second)
				assert.Equal(t, c.counts, before != w.entry())
				assert.Equal(t, c.counts, !maps.Equal(asked, fresh()))

				w.fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil))
				reads := w.readCount()
				w.set(tls, "3")
				w.pass(time.Minute)
				if c.without != nil {
					assert.Equal(t, reads, w.readCount())
					assert.Empty(t, w.hold(), "a permission that is not needed")
				}
			})
		})
	}
}
