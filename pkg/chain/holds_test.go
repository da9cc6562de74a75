package chain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// A hold of later would begin with the time of the one that has ended, and be reported at once.
func TestHoldThatHasEndedIsNotRecorded(t *testing.T) {
	t.Parallel()
	ring, err := digest.NewRing(map[string][]byte{"1": make([]byte, 32)})
	require.NoError(t, err)
	compiled, faults := referent.Compile(nil, []referent.Definition{
		{ID: "proxies", GVR: schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"}},
	}, "example.org/checksum")
	require.Empty(t, faults)
	proxies := compiled.Resources()[0]
	graph, err := referent.NewGraph(compiled, ring)
	require.NoError(t, err)
	graph.SetSource(proxies, "", referent.SourceSynced)

	a := &answers{ring: func() digest.Ring { return ring }, now: time.Now, refused: refusals{}}
	a.configure(compiled, false)
	evaluate := func() {
		changes, _ := a.evaluate(graph, nil, func(*referent.Graph, map[referent.Key]time.Time) []referent.Change { return nil })
		a.record(changes)
	}
	evaluate()
	_, key, unseen := a.state("ns", reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"})
	require.True(t, unseen, "it is missing")
	asked := []referent.Change{{Key: key, Held: true}}

	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace("ns")
	object.SetName("p")
	graph.Set(proxies, object)
	evaluate()
	a.record(asked)
	assert.False(t, a.isHeld(key), "it exists meanwhile")

	graph.Delete(key)
	evaluate()
	a.record(asked)
	assert.True(t, a.isHeld(key))
}
