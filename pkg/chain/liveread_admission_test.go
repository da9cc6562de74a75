package chain_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestAdmissionReadsLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		before := w.entry()
		w.mu.Lock()
		w.contents[tls] = "2" // no event has come
		w.mu.Unlock()
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		newest, _ := w.currentRing().Newest()
		live, ok := states[proxy].Entry(newest.ID)
		require.True(t, ok, "the live state has an Entry under the newest key")
		assert.NotEqual(t, before, live)
		assert.Equal(t, before, w.entry(), "the graph does not know it yet")
		w.set(tls, "2")
		w.pass(time.Second)
		assert.Equal(t, live, w.entry(), "both compute the same")

		w.mu.Lock()
		w.failing = errors.New("no answer")
		w.mu.Unlock()
		states, err = chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Equal(t, live, states[proxy].Entries[newest.ID], "where it cannot be read, the graph answers")
		assert.Empty(t, states[proxy].Unverified, "which knows all that the watches know of")

		w.set(tls, "3") // the graph cannot read it either
		w.pass(time.Second)
		states, err = chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Equal(t, live, states[proxy].Entries[newest.ID])
		assert.Contains(t, states[proxy].Unverified, "no answer", "the watches know of a later one")
		w.mu.Lock()
		w.failing = nil
		w.mu.Unlock()
		w.pass(time.Minute)
		states, err = chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Empty(t, states[proxy].Unverified)
	})
}

// An object that is created again has the generation 1 again, which counts as a change at admission, too.
func TestAdmissionComputesTheGenerationAsTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(services, "s", map[string]any{})
		w.put(proxies, "p", map[string]any{"service": "s"})
		definitions := proxyToSecret()
		definitions[0].Self.Rule = referent.SelfGeneration
		w.Configure(definitions)
		w.pass(time.Second)
		before := w.entry()
		at := w.client.Resource(services).Namespace("ns")
		object, err := at.Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, at.Delete(t.Context(), "s", metav1.DeleteOptions{}))
		object.SetUID("uid-2")
		_, err = at.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		w.pass(time.Second)
		assert.NotEqual(t, before, w.entry())
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries)
	})
}

// referToMany has the proxy p refer to so many services, and returns their names.
func (w *world) referToMany(count int) (names []any) {
	definitions := proxyToSecret()
	definitions[1].Refs[0].Name = "spec.services[*]"
	for n := range count {
		names = append(names, fmt.Sprint("s", n))
		w.put(services, fmt.Sprint("s", n), map[string]any{})
	}
	w.put(proxies, "p", map[string]any{"services": names})
	w.Configure(definitions)
	w.pass(time.Second)
	return names
}

// A question at admission costs 50 reads at most, whatever the objects refer to. Beyond, the graph of the watches answers.
func TestAdmissionReadsFiftyObjectsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		names := w.referToMany(49)
		ask := func() (digest.State, int) {
			w.client.ClearActions()
			states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
			require.NoError(t, err)
			reads := 0
			for _, action := range w.client.Actions() {
				if action.GetVerb() == "get" {
					reads++
				}
			}
			return states[proxy], reads
		}
		state, reads := ask()
		assert.Equal(t, 50, reads, "the proxy and what is below it")
		assert.Equal(t, w.State("ns", proxy).Entries, state.Entries)

		before := w.State("ns", proxy).Entries
		live, err := w.client.Resource(proxies).Namespace("ns").Get(t.Context(), "p", metav1.GetOptions{})
		require.NoError(t, err)
		live.Object["spec"] = map[string]any{"services": append(names, "s50", "s51")}
		later := true
		w.client.PrependReactor("get", proxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return later, live, nil
		})
		state, reads = ask()
		assert.LessOrEqual(t, reads, 50, "no event of the edit has come yet")
		assert.Equal(t, before, state.Entries, "the graph answers")
		later = false

		w.put(services, "s50", map[string]any{})
		w.put(proxies, "p", map[string]any{"services": append(names, "s50")})
		w.pass(time.Second)
		state, reads = ask()
		assert.Zero(t, reads, "the graph has more than 50")
		assert.Equal(t, w.State("ns", proxy).Entries, state.Entries)
		assert.NotEqual(t, before, state.Entries)
	})
}
