package chain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestAChangedLeafChangesTheStateAndIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		first := w.entry()
		w.take()
		w.set(tls, "2")
		w.pass(time.Second)
		second := w.entry()
		assert.NotEqual(t, first, second)
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(first.Short()))
		assert.Equal(t, []string{"ns kafkaproxies.kroxylicious.io/p", "ns kafkaservices.kroxylicious.io/s"}, w.take())

		w.put(services, "s", map[string]any{"secret": "tls", "port": int64(1)})
		w.pass(time.Second)
		assert.NotEqual(t, second, w.entry())
		assert.Equal(t, "kafkaservices.kroxylicious.io/s,secret/tls", w.State("ns", proxy).Because(first.Short()), "all since then")
		assert.Equal(t, "kafkaservices.kroxylicious.io/s", w.State("ns", proxy).Because(second.Short()))
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.set(tls, "1")
		w.pass(time.Second)
		assert.Equal(t, first, w.entry(), "the content counts, not the way to it")
	})
}

// A request of the loop goes to the webhook of any replica, which may not have been asked about the resource before.
func TestACauseIsKnownWithoutAnEarlierQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, other := newWorld(t), newWorld(t)
		leader.graph()
		other.graph()
		first := leader.entry()
		other.set(tls, "2")
		other.pass(time.Second)
		assert.Equal(t, "secret/tls", other.State("ns", proxy).Because(first.Short()))
	})
}

func TestAResourceThatIsInstalledLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		install := w.refuse(services, apierrors.NewNotFound(services.GroupResource(), ""))
		w.graph()
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is not-installed: the cluster does not serve kafkaservices.kroxylicious.io in version v1alpha1", w.hold())
		install()
		w.pass(2 * time.Minute)
		assert.Empty(t, w.hold())
	})
}

func TestOtherDigestKeysKeepTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rotate := func(r digest.Ring) {
			w.rotate(r)
			w.pass(time.Second)
		}
		rotate(digest.Ring{})
		w.graph()
		assert.Equal(t, "no digest key is loaded yet", w.hold())
		rotate(digesttest.Ring(t, "1"))
		first := w.entry()
		rotate(digesttest.Ring(t, "12"))
		newest, _ := w.currentRing().Newest()
		assert.NotEmpty(t, w.State("ns", proxy).Entries[newest.ID])
		assert.Equal(t, first, w.State("ns", proxy).Entries[digesttest.Ring(t, "1").Keys()[0].ID], "under the older key nothing has changed")
	})
}

// After a rotation, the Record of a workload is still under the older key.
func TestACauseIsKnownUnderEachDigestKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		recorded := w.entry()
		w.rotate(digesttest.Ring(t, "12"))
		w.pass(time.Second)
		newest := w.entry()
		require.NotEqual(t, recorded, newest)
		w.set(tls, "2")
		w.pass(time.Second)
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(recorded.Short()))
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(newest.Short()))
		assert.Empty(t, w.State("ns", proxy).Because("another"))
	})
}

func TestAnotherConfigurationReplacesTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		first := w.entry()
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		w.take()
		definitions := proxyToSecret()
		definitions[0].Refs = nil
		w.Configure(definitions)
		w.pass(time.Second)
		assert.NotEqual(t, first, w.entry(), "the Secret does not belong to it any more")
		assert.Contains(t, w.take(), "ns kafkaproxies.kroxylicious.io/p")
		w.Configure(nil)
		w.pass(time.Second)
		assert.Contains(t, w.hold(), "have no resource")
	})
}

func TestWaitForSyncWaitsForAllThatCanBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(services, apierrors.NewNotFound(services.GroupResource(), ""))
		w.contents[tls] = "1"
		w.put(proxies, "p", map[string]any{"service": "s"})
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, w.WaitForSync(soon), context.DeadlineExceeded, "it is not configured")
		w.Configure(proxyToSecret())
		require.NoError(t, w.WaitForSync(t.Context()))
		picture, err := w.Picture("ns", "kafkaproxies.kroxylicious.io/p")
		require.NoError(t, err)
		require.Len(t, picture.Nodes, 2)
		assert.Contains(t, picture.Text(), "not-installed")
		_, err = w.Picture("ns", "unknown.example.org/p")
		require.ErrorContains(t, err, "no resource")
		_, err = w.Picture("ns", "kafkaproxies.kroxylicious.io/other")
		require.EqualError(t, err, "kafkaproxies.kroxylicious.io/other in namespace ns: missing")
		picture, err = w.Picture("ns", "kafkaproxies.kroxylicious.io/other", "kafkaproxies.kroxylicious.io/p")
		require.NoError(t, err, "a workload can run with several, of which one is missing")
		assert.Contains(t, picture.Text(), "kafkaproxies.kroxylicious.io/other in namespace ns  [missing]\nkafkaproxies.kroxylicious.io/p in namespace ns  [")
		assert.Contains(t, picture.DOT(), "other")
	})
}

// The loop knows which workloads track an object without a namespace: the chain keeps nothing of the namespaces that have asked.
func TestAChangeOfAClusterScopedObjectIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		definitions := proxyToSecret()[1:]
		definitions[0].Refs, definitions[0].ClusterScoped = nil, true
		w.Configure(definitions)
		w.pass(time.Second)
		assert.True(t, w.ClusterScoped(proxy.Kind))
		assert.False(t, w.ClusterScoped(tls.Kind))
		for n := range 1_000 {
			require.NotNil(t, w.State(fmt.Sprint("ns-", n), proxy).Hold)
		}
		at := w.client.Resource(proxies)
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		object.SetGroupVersionKind(proxies.GroupVersion().WithKind("KafkaProxy"))
		object.SetName("p")
		_, err := at.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		w.pass(time.Second)
		assert.Equal(t, []string{" kafkaproxies.kroxylicious.io/p"}, w.take())
		assert.Nil(t, w.State("ns-7", proxy).Hold)
		assert.Equal(t, w.State("ns-7", proxy).Entries, w.State("ns-8", proxy).Entries)
	})
}

// Objects of several namespaces would be one, or none would be found.
func TestAnotherScopeThanThatOfTheClusterIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		definitions := proxyToSecret()
		definitions[1].ClusterScoped, definitions[1].Refs = true, nil
		w.Configure(definitions)
		w.pass(time.Second)
		assert.Equal(t, "invalid: referents[1].scope: objects of kafkaproxies.kroxylicious.io have a namespace; leave out scope: Cluster", w.hold())
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		assert.Empty(t, w.hold())

		// The definition is made again, in another scope.
		realm := &unstructured.Unstructured{}
		realm.SetGroupVersionKind(services.GroupVersion().WithKind("Any"))
		realm.SetName("s")
		at := w.client.Resource(services)
		require.NoError(t, at.Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
		_, err := at.Create(t.Context(), realm, metav1.CreateOptions{})
		require.NoError(t, err)
		w.pass(time.Second)
		assert.Contains(t, w.hold(), "s is invalid: referents[0].scope: objects of kafkaservices.kroxylicious.io have no namespace; set scope: Cluster")
		require.NoError(t, at.Delete(t.Context(), "s", metav1.DeleteOptions{}))
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		assert.Empty(t, w.hold(), "and back")
	})
}

// Where each namespace has a list of its own, the path of that list is not found.
func TestScopeIsNamedWhereTheListOfANamespaceIsNotFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ns")
		w.refuse(services, apierrors.NewNotFound(services.GroupResource(), ""))
		w.graph()
		assert.Contains(t, w.hold(), "s is not-installed: the cluster does not serve kafkaservices.kroxylicious.io in version v1alpha1, "+
			"or its objects have no namespace: then set scope: Cluster in referents[0]")
	})
}

func TestPathsLeadUpToTheTrackedResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		assert.Nil(t, w.Path("ns", proxy, "secret/tls"), "nothing is configured")
		w.graph()
		service, root := "kafkaservices.kroxylicious.io/s", "kafkaproxies.kroxylicious.io/p"
		assert.Equal(t, []string{"secret/tls", service, root}, w.Path("ns", proxy, "secret/tls"))
		assert.Nil(t, w.Path("ns", proxy, "secret/other"), "it is not below")
		assert.Nil(t, w.Path("ns", proxy, root), "it is the resource itself")
		assert.Nil(t, w.Path("ns", proxy, ""), "nothing holds it")
		w.put(services, "s", map[string]any{"secret": "absent"})
		w.pass(time.Second)
		assert.Equal(t, []string{"secret/absent", service, root}, w.Path("ns", proxy, ""))
	})
}

// A user who can name objects, or create and delete them, must not fill the memory.
func TestHoldStateIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.SetSpare(100)
		w.graph()
		first, before := w.entry(), w.Remembered()
		refs := make([]reference.Ref, 1_000)
		for n := range refs {
			refs[n] = reference.Ref{Kind: proxy.Kind, Name: fmt.Sprint("asked-", n)}
		}
		_, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", refs)
		require.NoError(t, err)
		assert.Equal(t, before, w.Remembered(), "nothing of questions at admission")

		for n := range 1_000 {
			state := w.State("ns", reference.Ref{Kind: proxy.Kind, Name: fmt.Sprint("tracked-", n)})
			require.NotNil(t, state.Hold)
		}
		for n := range 500 {
			ref := reference.Ref{Kind: proxy.Kind, Name: fmt.Sprint("made-", n)}
			w.put(proxies, ref.Name, map[string]any{})
			if n%4 == 3 {
				w.pass(time.Second)
			}
			w.State("ns", ref)
			require.NoError(t, w.client.Resource(proxies).Namespace("ns").Delete(t.Context(), ref.Name, metav1.DeleteOptions{}))
		}
		w.pass(time.Second)
		assert.Less(t, w.Remembered(), 300)
		assert.Empty(t, w.hold())
		w.set(tls, "2")
		w.pass(time.Second)
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(first.Short()), "what is in the graph is remembered")
	})
}

// The objects of a tenant can be large, and many.
func TestTheContentOfObjectsIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		before, first := w.Kept(), w.entry()
		w.put(services, "s", map[string]any{"secret": "tls", "large": strings.Repeat("x", 900_000)})
		w.pass(time.Second)
		second := w.entry()
		assert.NotEqual(t, first, second, "it counts")
		assert.Less(t, w.Kept(), before+100)

		w.mu.Lock()
		w.ring = digesttest.Ring(t, "12")
		w.mu.Unlock()
		w.KeysChanged()
		w.pass(time.Second)
		old, _ := digesttest.Ring(t, "1").Newest()
		state := w.State("ns", proxy)
		entry, ok := state.Entry(old.ID)
		require.True(t, ok, "the older key is in the ring")
		assert.Equal(t, second, entry, "the graph is made again without it")
	})
}

// Many resources below one become ready and not ready all the time. Nothing that counts changes, so that the state in the end is
// that of the beginning, and each of them is evaluated once for a change at most.
func TestManyResourcesThatFlap(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, flaps = 60, 2
		w := newWorld(t)
		registry := prometheus.NewRegistry()
		require.NoError(t, w.Register(registry))
		w.Configure([]referent.Definition{
			{ID: "services", GVR: services, Ready: referent.ReadyDefinition{Conditions: []referent.ConditionDefinition{{Type: "Ready"}}}},
			{ID: "proxies", GVR: proxies, Publish: true, Refs: []referent.EdgeDefinition{{Resource: "services", Name: "spec.services[*]"}}},
		})
		var names []any
		for n := range many {
			names = append(names, fmt.Sprint("s", n))
		}
		w.put(proxies, "p", map[string]any{"services": names})
		all := func(status string) {
			for n := range many {
				w.putStatus(services, fmt.Sprint("s", n), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}})
			}
			w.pass(time.Second)
		}
		all("True")
		before, evaluated := w.entry(), values(t, registry)["pod_reloader_referent_evaluations_total"]
		w.take()
		for range flaps {
			all("False")
			assert.Contains(t, w.hold(), "not-ready")
			all("True")
		}
		assert.Equal(t, before, w.entry())
		assert.LessOrEqual(t, len(w.take()), 2*flaps*(many+1), "each change is reported once")
		now := values(t, registry)
		assert.LessOrEqual(t, now["pod_reloader_referent_evaluations_total"]-evaluated, float64(2*flaps*(many+many/10)))
		assert.Zero(t, now["pod_reloader_referent_held not-ready"])
		w.pass(time.Hour)
		assert.InDelta(t, now["pod_reloader_referent_evaluations_total"], values(t, registry)["pod_reloader_referent_evaluations_total"], 0, "it is quiet afterwards")
	})
}
