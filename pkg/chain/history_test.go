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
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// onlyProxies defines proxies, which refer to nothing.
func onlyProxies() []referent.Definition {
	return []referent.Definition{{ID: "proxies", GVR: schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"}}}
}

// proxiesAlone is a graph of them.
func proxiesAlone(t *testing.T) (digest.Ring, *referent.Schema, *referent.Graph) {
	t.Helper()
	ring := digesttest.Ring(t, "1")
	compiled, faults := referent.Compile(nil, onlyProxies(), "example.org/checksum")
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
	key := proxies.Key("ns", "p")
	h := &history{spare: defaultSpare}
	h.begin()
	add := func(changes []referent.Change) { h.add(graph, changes, ring.Keys(), time.Now()) }
	asked := []referent.Change{{Key: key, Held: true}}

	graph.Put(proxies.Read(named("p")))
	add(graph.Evaluate().Changes)
	add(asked)
	assert.NotContains(t, h.held, key, "it exists meanwhile")

	graph.Delete(key)
	graph.Evaluate()
	add(asked)
	assert.Contains(t, h.held, key)
}

// A refused list has no object, and an object that is in the graph can be asked for again. The others were deleted, or never existed.
func TestRefusalsOfObjectsThatAreInNoGraphAreDropped(t *testing.T) {
	t.Parallel()
	_, compiled, graph := proxiesAlone(t)
	proxies := compiled.Resources()[0]
	h := &history{refused: refusals{}, spare: defaultSpare}
	h.begin()
	graph.Put(proxies.Read(named("p")))
	graph.Evaluate()
	list, present := proxies.Key("ns", ""), proxies.Key("ns", "p")
	for _, key := range []referent.Key{list, present} {
		h.refused[key] = time.Now()
	}
	for i := range 2 + defaultSpare - 3 {
		h.refused[proxies.Key("ns", fmt.Sprint("gone-", i))] = time.Now()
	}
	h.add(graph, nil, nil, time.Now())
	assert.Len(t, h.refused, 2+defaultSpare-1, "few more than the graph has objects")
	h.refused[proxies.Key("ns", "gone")] = time.Now()
	h.add(graph, nil, nil, time.Now())
	assert.Len(t, h.refused, 2)
	assert.Contains(t, h.refused, list)
	assert.Contains(t, h.refused, present)
}

// Of a custom resource that changes all the time, the causes of the latest eight changes are kept.
func TestCausesOfTheLatestChangesAreKept(t *testing.T) {
	t.Parallel()
	ring, compiled, graph := proxiesAlone(t)
	proxies := compiled.Resources()[0]
	key := proxies.Key("ns", "p")
	h := &history{spare: defaultSpare}
	h.begin()
	var entries []string
	for n := range 10 {
		object := named("p")
		object.Object["spec"] = map[string]any{"change": int64(n)}
		graph.Put(proxies.Read(object))
		h.add(graph, graph.Evaluate().Changes, ring.Keys(), time.Now())
		entries = append(entries, newest(h.tracked[key].entries))
	}
	now := digest.State{Steps: h.tracked[key].list}
	assert.Empty(t, now.Because(entries[0]), "that was nine changes ago")
	assert.Equal(t, key.String(), now.Because(entries[1]), "that was eight changes ago")
}
