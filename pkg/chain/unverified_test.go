package chain

import (
	"errors"
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

// layered are answers from a graph of layers, each of whose objects refer to all objects of the next one, and a question about the first
// layer while a Secret below another object is read.
func layered(t *testing.T, layers, wide int) (*graphState, []reference.Ref) {
	t.Helper()
	compiled, faults := referent.Compile(nil, []referent.Definition{{
		ID: "proxies", GVR: schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"},
		Refs: []referent.EdgeDefinition{{Resource: "proxies", Name: "spec.proxies[*]", Optional: true}},
	}}, "example.org/checksum")
	require.Empty(t, faults)
	keys := digesttest.Ring(t, "1")
	graph, err := referent.NewGraph(compiled, keys)
	require.NoError(t, err)
	resource := compiled.Resources()[0]
	graph.SetSource(resource, "", referent.SourceSynced)
	a := &graphState{
		now: time.Now, ring: func() digest.Ring { return keys }, configuration: configuration{configured: true, schema: compiled}, graph: graph,
		outdated: map[referent.Key]struct{}{referent.ConfigKey("ns", reference.Ref{Kind: reference.Secret, Name: "tls"}): {}},
	}
	var refs []reference.Ref
	for layer := range layers {
		next := make([]any, wide)
		for i := range next {
			next[i] = fmt.Sprintf("l%d-%d", layer+1, i)
		}
		for i := range wide {
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"proxies": next}}}
			object.SetNamespace("ns")
			object.SetName(fmt.Sprintf("l%d-%d", layer, i))
			graph.Put(resource.Read(object))
			if layer == 0 {
				refs = append(refs, reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: object.GetName()})
			}
		}
	}
	graph.Evaluate()
	return a, refs
}

// While a question is answered, the graph cannot change, and other questions wait for that change.
func TestQuestionAboutManyResourcesWalksTheGraphOnce(t *testing.T) { //nolint:paralleltest // it counts the allocations of the whole process
	a, refs := layered(t, 5, 30)
	cost := func(refs []reference.Ref) float64 {
		return testing.AllocsPerRun(1, func() {
			states := a.unverified("ns", refs, errors.New("no answer"))
			require.Nil(t, states[refs[0]].Hold)
			require.Empty(t, states[refs[0]].Unverified)
		})
	}
	one, all := cost(refs[:1]), cost(refs)
	assert.Less(t, all, 5*one, "%d resources", len(refs))
}
