package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestObjectWithoutReferencesIsHeldAndCountsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	hub := w.resource("a").Read(object("hub", map[string]any{"to": []any{"leaf", "absent"}}))
	w.loose("leaf")
	w.Put(hub)
	w.Evaluate()
	require.Equal(t, "map[n:{3 2}] 3", w.Sizes())
	require.Equal(t, 2, hub.References())

	bare := hub.WithoutReferences()
	w.Put(bare)
	w.Evaluate()
	assert.Zero(t, bare.References())
	assert.Equal(t, 2, hub.References(), "the object itself remains")
	assert.False(t, bare.Equal(hub))
	assert.False(t, w.Has(key("a/absent")))
	assert.Equal(t, "map[n:{2 2}] 2", w.Sizes(), "the references still count")
	require.NotNil(t, w.Hold(key("a/hub")))
	assert.Equal(t, referent.TooMany, w.Hold(key("a/hub")).Reason)

	w.Put(hub)
	w.Evaluate()
	assert.Equal(t, "map[n:{3 2}] 3", w.Sizes())
	assert.Equal(t, "a.example.io/absent: missing", w.Hold(key("a/hub")).String())
}

// The parent may be in another namespace. It must not lose the child: that would be a change.
func TestObjectWithoutReferencesHoldsItsParents(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	before := w.entry("proxies/p")
	cluster := w.resource("clusters").Read(object("c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("s")}))
	w.Put(cluster.WithoutReferences())
	w.Evaluate()
	require.NotNil(t, w.Hold(key("proxies/p")))
	assert.Equal(t, key("clusters/c2"), w.Hold(key("proxies/p")).Node)
	w.Put(cluster)
	w.Evaluate()
	assert.Equal(t, before, w.entry("proxies/p"))
}
