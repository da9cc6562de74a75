package chain_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// crossing is a proxy with a service of its own namespace and one of the namespace infra, each of which refers to a Secret of one name.
func crossing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.contents[tls] = "1"
	w.put(services, "s", map[string]any{"secret": "tls"})
	shared := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "tls"}}}
	shared.SetNamespace("infra")
	w.store(services, "shared", shared)
	w.put(proxies, "p", map[string]any{"services": []any{
		map[string]any{"name": "s"}, map[string]any{"name": "shared", "namespace": "infra"},
	}})
	w.Configure([]referent.Definition{
		{ID: "services", GVR: services, Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}},
		{ID: "proxies", GVR: proxies, Refs: []referent.EdgeDefinition{{
			Resource: "services", Name: "spec.services[*].name", Namespace: "spec.services[*].namespace", Namespaces: []string{"infra"},
		}}},
	})
	w.pass(time.Second)
	return w
}

func TestCauseOfAnotherNamespaceIsNamedWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := crossing(t)
		service, root := "kafkaservices.kroxylicious.io/s", "kafkaproxies.kroxylicious.io/p"
		first := w.entry()
		w.set(tls, "2")
		w.pass(time.Second)
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(first.Short()))
		assert.Equal(t, []string{"secret/tls", service, root}, w.Path("ns", proxy, "secret/tls"))

		second := w.entry()
		w.ConfigChanged(configstate.Event{Namespace: "infra", Ref: tls, Type: configstate.Modified})
		w.pass(time.Second)
		cause := w.State("ns", proxy).Because(second.Short())
		assert.Equal(t, "secret/infra/tls", cause)
		assert.Equal(t, []string{
			"secret/tls in namespace infra", "kafkaservices.kroxylicious.io/shared in namespace infra", root,
		}, w.Path("ns", proxy, cause))
	})
}

// An object can be deleted and created again while something else changes, as with its definition. It has changed nothing then.
func TestObjectThatCameBackAsItWasIsNoCause(t *testing.T) {
	t.Parallel()
	service, root := "kafkaservices.kroxylicious.io/s", "kafkaproxies.kroxylicious.io/p"
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		object   string
		spec     map[string]any
		secret   string
		want     string
	}{
		"a child":                     {services, "s", map[string]any{"secret": "tls"}, "2", "secret/tls"},
		"the object itself":           {proxies, "p", map[string]any{"service": "s"}, "2", "secret/tls"},
		"a child, with another spec":  {services, "s", map[string]any{"secret": "tls", "port": int64(1)}, "2", service + ",secret/tls"},
		"a child, alone":              {services, "s", map[string]any{"secret": "tls", "port": int64(1)}, "1", service},
		"the object itself, alone":    {proxies, "p", map[string]any{"service": "s", "port": int64(1)}, "1", root},
		"the object itself, and more": {proxies, "p", map[string]any{"service": "s", "port": int64(1)}, "2", root + ",secret/tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				first := w.entry()
				require.NoError(t, w.client.Resource(tc.resource).Namespace("ns").Delete(t.Context(), tc.object, metav1.DeleteOptions{}))
				w.pass(time.Second)
				require.NotNil(t, w.State("ns", proxy).Hold)
				w.set(tls, tc.secret)
				w.pass(time.Second)
				w.put(tc.resource, tc.object, tc.spec)
				w.pass(time.Second)
				assert.Equal(t, tc.want, w.State("ns", proxy).Because(first.Short()))
			})
		})
	}
}

// Where an object may be absent, its absence is a change, and its return another one.
func TestOptionalObjectThatComesBackIsACause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(services, "s", map[string]any{})
		w.put(proxies, "p", map[string]any{"service": "s"})
		w.Configure([]referent.Definition{
			{ID: "services", GVR: services},
			{ID: "proxies", GVR: proxies, Refs: []referent.EdgeDefinition{{Resource: "services", Name: "spec.service", Optional: true}}},
		})
		w.pass(time.Second)
		with := w.entry()
		require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
		w.pass(time.Second)
		without := w.entry()
		assert.Equal(t, "kafkaservices.kroxylicious.io/s", w.State("ns", proxy).Because(with.Short()))
		w.put(services, "s", map[string]any{})
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s", w.State("ns", proxy).Because(without.Short()))
		assert.Equal(t, with, w.entry())
	})
}

// The graph names the first five objects that have changed. A definition that is deleted and created again brings all of its objects back.
func TestChangeBesideManyObjectsThatCameBackIsACause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.contents[tls] = "1"
		const count = 2 * referent.MaxCauses
		var names []any
		put := func(port int64) {
			for n := range count {
				spec := map[string]any{"secret": "tls"}
				if n == count-1 {
					spec["port"] = port
				}
				w.put(services, fmt.Sprint("s", n), spec)
			}
		}
		put(1)
		for n := range count {
			names = append(names, fmt.Sprint("s", n))
		}
		w.put(proxies, "p", map[string]any{"services": names})
		definitions := proxyToSecret()
		definitions[1].Refs[0].Name = "spec.services[*]"
		w.Configure(definitions)
		w.pass(time.Second)
		first := w.entry()
		for n := range count {
			require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), fmt.Sprint("s", n), metav1.DeleteOptions{}))
		}
		w.pass(time.Second)
		require.NotNil(t, w.State("ns", proxy).Hold)
		put(2)
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s9", w.State("ns", proxy).Because(first.Short()))
	})
}

// An object that may be absent can be so before and after the one that refers to it was away.
func TestOptionalObjectThatIsAbsentAsBeforeIsNoCause(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]bool{"it never existed": false, "it was created and deleted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.contents[tls] = "1"
				w.put(services, "s", map[string]any{"secret": "tls"})
				spec := map[string]any{"service": "s", "route": "r"}
				w.put(proxies, "p", spec)
				definitions := append(proxyToSecret(), referent.Definition{ID: "routes", GVR: routes})
				definitions[1].Refs = append(definitions[1].Refs, referent.EdgeDefinition{Resource: "routes", Name: "spec.route", Optional: true})
				w.Configure(definitions)
				w.pass(time.Second)
				first := w.entry()
				w.remove("p")
				w.pass(time.Second)
				if created {
					w.put(routes, "r", map[string]any{})
					w.pass(time.Second)
					require.NoError(t, w.client.Resource(routes).Namespace("ns").Delete(t.Context(), "r", metav1.DeleteOptions{}))
				}
				w.set(tls, "2")
				w.pass(time.Second)
				w.put(proxies, "p", spec)
				w.pass(time.Second)
				assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(first.Short()))
			})
		})
	}
}

// An object that refers to another one is not below it any more once it is deleted.
func TestReferrerThatWasDeletedWhileTheOtherOneWasAwayIsACause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		service := reference.Ref{Kind: "kafkaservices.kroxylicious.io", Name: "s"}
		w.put(services, "s", map[string]any{})
		for _, name := range []string{"p", "q"} {
			w.put(proxies, name, map[string]any{"services": []any{"s"}})
		}
		w.Configure(referrers())
		w.pass(time.Second)
		newest, _ := w.currentRing().Newest()
		first, ok := w.State("ns", service).Entry(newest.ID)
		require.True(t, ok)
		require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
		w.pass(time.Second)
		w.remove("q")
		w.pass(time.Second)
		w.put(services, "s", map[string]any{})
		w.pass(time.Second)
		assert.Equal(t, "kafkaproxies.kroxylicious.io/q", w.State("ns", service).Because(first.Short()))
	})
}

// What another object refers to as well remains in the graph.
func TestChangeBelowAChildThatWasAwayIsACause(t *testing.T) {
	t.Parallel()
	service := "kafkaservices.kroxylicious.io/s"
	for name, tc := range map[string]struct {
		port int64
		want string
	}{"it came back as it was": {1, "secret/tls"}, "it came back as another one": {2, service + ",secret/tls"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put(services, "s", map[string]any{"secret": "tls", "port": int64(1)})
				w.put(services, "other", map[string]any{"secret": "tls"})
				w.put(proxies, "p", map[string]any{"service": "s"})
				w.contents[tls] = "1"
				w.Configure(proxyToSecret())
				w.pass(time.Second)
				first := w.entry()
				require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
				w.pass(time.Second)
				w.set(tls, "2")
				w.pass(time.Second)
				w.put(services, "s", map[string]any{"secret": "tls", "port": tc.port})
				w.pass(time.Second)
				assert.Equal(t, tc.want, w.State("ns", proxy).Because(first.Short()))
			})
		})
	}
}
