package chain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// proxiesAlone is a graph of proxies, which refer to nothing.
func proxiesAlone(t *testing.T) (digest.Ring, *referent.Schema, *referent.Graph) {
	t.Helper()
	ring := digesttest.Ring(t, "1")
	compiled, faults := referent.Compile(nil, []referent.Definition{
		{ID: "proxies", GVR: schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"}},
	}, "example.org/checksum")
	require.Empty(t, faults)
	graph, err := referent.NewGraph(compiled, ring)
	require.NoError(t, err)
	graph.SetSource(compiled.Resources()[0], "", referent.SourceSynced)
	return ring, compiled, graph
}

func named(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace("ns")
	object.SetName(name)
	return object
}

// A hold of later would begin with the time of the one that has ended, and be reported at once.
func TestHoldThatHasEndedIsNotRecorded(t *testing.T) {
	t.Parallel()
	ring, compiled, graph := proxiesAlone(t)
	proxies := compiled.Resources()[0]
	a := &graphState{ring: func() digest.Ring { return ring }, now: time.Now, refused: refusals{}}
	a.configure(compiled, false)
	evaluate := func() {
		changes, _ := a.evaluate(graph, nil, func(*referent.Graph, map[referent.Key]time.Time) []referent.Change { return nil })
		a.record(changes)
	}
	evaluate()
	_, key, unseen := a.state("ns", reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"})
	require.True(t, unseen, "it is missing")
	asked := []referent.Change{{Key: key, Held: true}}

	graph.Put(proxies.Read(named("p")))
	evaluate()
	a.record(asked)
	assert.False(t, a.isHeld(key), "it exists meanwhile")

	graph.Delete(key)
	evaluate()
	a.record(asked)
	assert.True(t, a.isHeld(key))
}

// A refused list has no object, and an object that is in the graph can be asked for again. The others were deleted, or never existed.
func TestRefusalsOfObjectsThatAreInNoGraphAreDropped(t *testing.T) {
	t.Parallel()
	ring, compiled, graph := proxiesAlone(t)
	proxies := compiled.Resources()[0]
	a := &graphState{ring: func() digest.Ring { return ring }, now: time.Now, refused: refusals{}}
	a.configure(compiled, false)
	graph.Put(proxies.Read(named("p")))
	a.evaluate(graph, nil, func(*referent.Graph, map[referent.Key]time.Time) []referent.Change { return nil })
	list, present := proxies.Key("ns", ""), proxies.Key("ns", "p")
	for _, key := range []referent.Key{list, present} {
		a.refused[key] = time.Now()
	}
	for i := range 2 + spare - 3 {
		a.refused[proxies.Key("ns", fmt.Sprint("gone-", i))] = time.Now()
	}
	a.record(nil)
	assert.Len(t, a.refused, 2+spare-1, "few more than the graph has objects")
	a.refused[proxies.Key("ns", "gone")] = time.Now()
	a.record(nil)
	assert.Len(t, a.refused, 2)
	assert.Contains(t, a.refused, list)
	assert.Contains(t, a.refused, present)
}
