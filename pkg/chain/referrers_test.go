package chain_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// referrers is services ← proxies: each proxy counts below the services that it names.
func referrers() []referent.Definition {
	return []referent.Definition{
		{ID: "services", GVR: services, Referrers: []referent.EdgeDefinition{{Resource: "proxies", Name: "spec.services[*]"}}},
		{ID: "proxies", GVR: proxies},
	}
}

// The objects that a reference names need not exist: each name would be a node.
func TestReferencesToParentsBeyondTheBoundAreReadOnceTheBoundAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := boundedWorld(t)
		const full, beyond = namespaceReferences / objectReferences, 3
		for i := range full {
			w.put(proxies, fmt.Sprint("full", i), references("s"))
		}
		w.put(services, "of-p0", map[string]any{})
		w.Configure(referrers())
		w.pass(time.Second)
		for i := range beyond {
			w.put(proxies, fmt.Sprint("p", i), references(fmt.Sprintf("of-p%d", i)))
		}
		w.put(proxies, "p", references("of-p"))
		w.pass(time.Second)
		service := reference.Ref{Kind: "kafkaservices.kroxylicious.io", Name: "of-p0"}
		state := w.State("ns", service)
		if assert.NotNil(t, state.Hold) {
			assert.Contains(t, state.Hold.Reason, "too-many")
		}
		assert.LessOrEqual(t, w.Nodes(), objectReferences+full+beyond+2, "references beyond the bound are no nodes")

		for i := range beyond + 1 {
			w.remove(fmt.Sprint("full", i))
		}
		w.pass(time.Minute)
		state = w.State("ns", service)
		assert.Nil(t, state.Hold)
		w.remove("p")
		w.pass(time.Second)
		assert.NotEqual(t, state.Entries, w.State("ns", service).Entries, "p is below it")
	})
}

// Which objects refer to another one is known from the watches alone, also where that is met in a live read: an object that is created
// right before the workload is in no watch, and what has referred for weeks to the objects below it is.
func TestLiveReadFindsReferrersBelowAnObjectThatNoWatchHasDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(services, "s", map[string]any{})
		w.put(routes, "r", map[string]any{"service": "s", "secret": "tls"})
		w.mu.Lock()
		w.contents[tls] = "1"
		w.mu.Unlock()
		w.Configure([]referent.Definition{
			{ID: "routes", GVR: routes, Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}},
			{ID: "services", GVR: services, Referrers: []referent.EdgeDefinition{{Resource: "routes", Name: "spec.service"}}},
			{ID: "proxies", GVR: proxies, Refs: []referent.EdgeDefinition{{Resource: "services", Name: "spec.service"}}},
		})
		w.pass(time.Second)
		w.client.PrependReactor("get", proxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			created := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"service": "s"}}}
			created.SetNamespace("ns")
			created.SetName("p")
			return true, created, nil
		})
		ask := func() digest.State {
			states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
			require.NoError(t, err)
			require.Nil(t, states[proxy].Hold)
			return states[proxy]
		}
		live := ask()
		w.put(proxies, "p", map[string]any{"service": "s"})
		w.pass(time.Second)
		assert.Equal(t, w.State("ns", proxy).Entries, live.Entries, "the event brings nothing new")
		assert.Equal(t, live.Entries, ask().Entries)
	})
}
