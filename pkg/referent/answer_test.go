package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// An object can be referred to before it exists, and after it is deleted: the graph has a node for it.
func TestExistsOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	assert.True(t, w.Exists(key("services/s")), "the object is stored")
	assert.False(t, w.Exists(key("services/other")), "nothing refers to it")
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("other")})
	assert.False(t, w.Exists(key("services/other")), "it is only referred to")
	w.Delete(key("services/s"))
	assert.False(t, w.Exists(key("services/s")), "it was deleted")
}

func TestHoldOfAnObjectOutsideOfTheGraph(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	hold := w.Hold(key("widgets/w"))
	require.NotNil(t, hold)
	assert.Equal(t, referent.Hold{Reason: referent.Invalid, Node: key("widgets/w"), Detail: "the configuration has no resource widgets.example.io"}, *hold)
	hold = w.Hold(key("services/other"))
	require.NotNil(t, hold)
	assert.Equal(t, referent.Missing, hold.Reason)
}

func TestHoldOfAResourceOfAnotherScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("as")}, referent.Definition{ID: "g", GVR: gvr("gs"), ClusterScoped: true})
	for name, want := range map[string]string{
		"as": "referents[0].scope: objects of as.example.io have no namespace; set scope: Cluster",
		"gs": "referents[1].scope: objects of gs.example.io have a namespace; leave out scope: Cluster",
	} {
		w.SetSource(w.resource(name), "", referent.SourceOtherScope)
		hold := w.Hold(w.resource(name).Key("n", "o"))
		require.NotNil(t, hold, name)
		assert.Equal(t, want, hold.Detail)
	}
}

func TestImpossibleReferenceIsNamedWithItsNamespace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		certificate map[string]any
		want        string
	}{
		"name":      {named("A/b"), `"A/b" names no object`},
		"namespace": {map[string]any{"name": "tls", "namespace": "B/x"}, `"tls" in namespace "B/x" names no object`},
	} {
		definition := referent.EdgeDefinition{Resource: "secrets", Name: "spec.tls.name", Namespace: "spec.tls.namespace"}
		w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("as"), Refs: []referent.EdgeDefinition{definition}})
		w.set("as/o", map[string]any{"tls": c.certificate})
		w.Evaluate()
		hold := w.Hold(key("as/o"))
		require.NotNil(t, hold, name)
		assert.Equal(t, referent.Invalid, hold.Reason, name)
		assert.Contains(t, hold.Detail, c.want, name)
	}
}
