package referent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
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
	assert.False(t, bare.Equal(hub), "the references are a part of the object")
	assert.False(t, w.Has(key("a/absent")), "nothing refers to it now")
	assert.Equal(t, "map[n:{2 2}] 2", w.Sizes(), "the references still count")
	require.NotNil(t, w.Hold(key("a/hub")))
	assert.Equal(t, referent.TooMany, w.Hold(key("a/hub")).Reason)

	w.Put(hub)
	w.Evaluate()
	assert.Equal(t, "map[n:{3 2}] 3", w.Sizes())
	assert.Equal(t, "a.example.io/absent: missing", w.Hold(key("a/hub")).String())
}

// A parent must not lose the child: that would be a change. Which parents an object has is not kept, so that all are held that it may have.
func TestObjectWithoutReferencesHoldsThoseThatCanBeItsParents(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.set("proxies/other", nil)
	w.Evaluate()
	before, beside := w.entry("proxies/p"), w.entry("services/s")
	cluster := w.resource("clusters").Read(object("c2", map[string]any{"proxyRef": named("absent"), "serviceRef": named("s")}))
	require.Equal(t, 2, cluster.References())
	require.Equal(t, "map[n:{9 8}] 9", w.Sizes(), "references to parents count, too")
	nodes := w.Len()
	w.Put(cluster.WithoutReferences())
	w.Evaluate()
	assert.Zero(t, cluster.WithoutReferences().References())
	assert.Equal(t, nodes, w.Len(), "parents that do not exist are not kept")
	for _, name := range []string{"proxies/p", "proxies/other"} {
		hold := w.Hold(key(name))
		require.NotNil(t, hold, name)
		assert.Equal(t, referent.TooMany, hold.Reason)
		assert.Equal(t, key(name), hold.Node)
		detail := "references of clusters.example.io, which can lead to this one, are left out: a namespace had more than 100000"
		assert.Equal(t, detail, hold.Detail)
	}
	assert.Equal(t, beside, w.entry("services/s"), "clusters do not count below it")

	live, err := w.NewEmpty(digesttest.Ring(t, "a"))
	require.NoError(t, err)
	live.Put(w.resource("proxies").Read(object("other", nil)))
	live.Evaluate()
	assert.NotNil(t, live.Hold(key("proxies/other")), "what is read live is not complete either")

	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("s")})
	w.Evaluate()
	assert.Equal(t, before, w.entry("proxies/p"))
	assert.NotEmpty(t, w.entry("proxies/other"))
}

func TestObjectWithoutReferencesHoldsParentsInNamespacesThatItMayReferTo(t *testing.T) {
	t.Parallel()
	for namespace, held := range map[string]bool{"infra": true, "other": false} {
		w := newWorld(t, crossing("infra")...)
		w.set("classes/c", nil, inNamespace(""))
		w.Evaluate()
		class := referent.Key{Group: "example.io", Resource: "classes", Name: "c"}
		gateway := w.resource("gateways").Read(object("g", map[string]any{"class": "c"}, inNamespace(namespace)))
		w.Put(gateway.WithoutReferences())
		w.Evaluate()
		assert.Equal(t, held, w.Hold(class) != nil, namespace)
		w.Delete(gateway.Key())
		w.Evaluate()
		assert.Nil(t, w.Hold(class), namespace)
	}
}

// The references of an object stay left out while it changes: those that can be its parents are held as before.
func TestChangeOfAnObjectWithoutReferencesConcernsNoParents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crossing("infra")...)
	const parents = 10
	for i := range parents {
		w.set(fmt.Sprint("classes/c", i), nil, inNamespace(""))
	}
	put := func(name string) int {
		spec := map[string]any{"class": name}
		w.Put(w.resource("gateways").Read(object("g", spec, inNamespace("infra"))).WithoutReferences())
		return w.Evaluate().Evaluated
	}
	assert.Equal(t, 1+parents, put("c1"))
	assert.Equal(t, 1, put("c2"))
}
