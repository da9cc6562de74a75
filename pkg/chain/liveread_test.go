package chain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// The graph answers for more than 50 objects. While it waits for a read, what it knows of the objects above is older than what the
// watches have delivered: a reload request that was verified with it would be followed by a second restart.
func TestMoreThanFiftyObjectsAreUnverifiedDuringARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		definitions := proxyToSecret()
		definitions[1].Refs[0].Name = "spec.services[*]"
		names := []any{"with-secret"}
		w.put(services, "with-secret", map[string]any{"secret": "tls"})
		for n := range 60 {
			names = append(names, fmt.Sprint("s", n))
			w.put(services, fmt.Sprint("s", n), map[string]any{})
		}
		w.put(proxies, "p", map[string]any{"services": names})
		w.put(proxies, "other", map[string]any{"services": names[1:]})
		w.contents[tls] = "1"
		w.Configure(definitions)
		w.pass(time.Second)
		before := w.State("ns", proxy).Entries
		require.NotEmpty(t, before)
		other := reference.Ref{Kind: proxy.Kind, Name: "other"}
		ask := func() map[reference.Ref]digest.State {
			states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy, other})
			require.NoError(t, err)
			require.NotEmpty(t, states[other].Entries)
			return states
		}
		assert.Empty(t, ask()[proxy].Unverified, "no read is outstanding")

		w.fail(errors.New("no answer"))
		w.set(tls, "2")
		w.pass(time.Second)
		states := ask()
		assert.Equal(t, before, states[proxy].Entries, "the graph answers")
		assert.Equal(t, "too many objects to read", states[proxy].Unverified)
		assert.Empty(t, states[other].Unverified, "the Secret is not below it")
		states, err := chain.Store{Chain: w.Chain}.ReadLive(t.Context(), "ns", []reference.Ref{proxy, other})
		var failed *configstate.ReadError
		require.ErrorAs(t, err, &failed, "the loop must not go by it")
		assert.Equal(t, proxy, failed.Ref)
		assert.Equal(t, []reference.Ref{other}, slices.Collect(maps.Keys(states)))

		w.fail(nil)
		w.pass(time.Minute)
		states = ask()
		assert.NotEqual(t, before, states[proxy].Entries)
		assert.Empty(t, states[proxy].Unverified)
	})
}

// readerFunc reads ConfigMaps and Secrets live.
type readerFunc func() error

func (f readerFunc) ReadLive(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return nil, f()
}

// A live read can take as long as the read that the graph waits for: then the state from before it must not count as verified.
func TestStateThatIsReadDuringAFailingQuestionIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(errors.New("no answer"))
		w.set(tls, "2")
		w.pass(time.Second)
		slow := readerFunc(func() error {
			w.fail(nil)
			<-time.After(15 * time.Second)
			return errors.New("timeout")
		})
		states, err := chain.ReadLive(t.Context(), slow, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Empty(t, states[proxy].Unverified)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries)
	})
}

// A connection can be dead without an error, and a caller may have no deadline.
func TestLiveReadOfACustomResourceIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.unanswered.Store(true)
		began := time.Now()
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries, "the graph answers")
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}

// A panic during a live read leaves the answer to the graph: it must not end the process.
func TestPanicDuringALiveReadIsAFailedRead(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(w *world) readerFunc{
		"of a custom resource": func(w *world) readerFunc {
			w.client.PrependReactor("get", proxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) { panic("oops") })
			return func() error { return nil }
		},
		"of a Secret": func(*world) readerFunc { return func() error { panic("oops") } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				states, err := chain.ReadLive(t.Context(), breaks(w), w.Chain, "ns", []reference.Ref{proxy})
				require.NoError(t, err)
				assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries)
			})
		})
	}
}

// absent finds no ConfigMap and no Secret.
type absent struct{}

func (absent) ReadLive(_ context.Context, _ string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		states[ref] = digest.State{Absent: true}
	}
	return states, nil
}

// A chain of objects that no watch has shown yet is read one after the other. It ends where the configuration lets no more follow.
func TestLongChainThatNoWatchHasShownIsUnverified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.contents[tls] = "1"
		w.put(proxies, "p", map[string]any{"secret": "tls"})
		w.Configure([]referent.Definition{{ID: "proxies", GVR: proxies, Refs: []referent.EdgeDefinition{
			{Resource: "proxies", Name: "spec.next"}, {Resource: "secrets", Name: "spec.secret"},
		}}})
		w.pass(time.Second)
		w.fail(errors.New("no answer"))
		w.set(tls, "2") // the graph waits for a read
		w.pass(time.Second)
		var references int
		w.client.PrependReactor("get", proxies.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			name := action.(clienttesting.GetAction).GetName()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if len(name) <= references {
				object.Object["spec"] = map[string]any{"next": name + "p"}
			}
			object.SetNamespace("ns")
			object.SetName(name)
			return true, object, nil
		})
		live := func() digest.State {
			states, err := chain.ReadLive(t.Context(), absent{}, w.Chain, "ns", []reference.Ref{proxy})
			require.NoError(t, err)
			return states[proxy]
		}
		graph := w.State("ns", proxy)
		references = referent.MaxDepth
		assert.Empty(t, live().Unverified)
		assert.NotEmpty(t, live().Entries)
		assert.NotEqual(t, graph.Entries, live().Entries, "all are read")
		references++
		assert.Equal(t, "more than 18 rounds of reads", live().Unverified)
		assert.Equal(t, graph.Entries, live().Entries, "the graph answers")
	})
}

// The config objects of a namespace that is not watched hold what refers to them. The others are read all the same.
func TestConfigObjectsOutsideOfTheNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ns")
		definitions := proxyToSecret()
		definitions[0].Refs[0] = referent.EdgeDefinition{
			Resource: "secrets", Name: "spec.secret", Namespace: "spec.in", Namespaces: []string{"elsewhere"},
		}
		definitions[1].Refs[0].Name = "spec.services[*]"
		w.contents[tls] = "1"
		w.put(services, "near", map[string]any{"secret": "tls"})
		w.put(services, "far", map[string]any{"secret": "tls", "in": "elsewhere"})
		w.put(proxies, "p", map[string]any{"services": []any{"near", "far"}})
		w.put(proxies, "other", map[string]any{"services": []any{"near"}})
		w.Configure(definitions)
		w.pass(time.Second)
		reads := w.readCount()
		other := reference.Ref{Kind: proxy.Kind, Name: "other"}
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy, other})
		require.NoError(t, err)
		require.NotNil(t, states[proxy].Hold)
		assert.Contains(t, states[proxy].Hold.Reason, "the namespace is not watched")
		assert.NotEmpty(t, states[other].Entries)
		assert.Empty(t, states[other].Unverified)
		assert.Equal(t, reads+1, w.readCount(), "one namespace is read")
	})
}

// The custom resources of a namespace that is not watched hold what refers to them, and the API server would refuse to read them.
func TestCustomResourcesOutsideOfTheNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused []referent.Key
		w := newWorldWith(t, chain.Options{
			Namespaces: []string{"ns"}, ReadRefused: func(key referent.Key) { refused = append(refused, key) },
		})
		definitions := proxyToSecret()
		definitions[1].Refs = []referent.EdgeDefinition{
			{Resource: "services", Name: "spec.service", Namespace: "spec.in", Namespaces: []string{"elsewhere"}},
			{Resource: "cluster", Name: "spec.cluster", Optional: true},
		}
		definitions = append(definitions, referent.Definition{
			ID: "cluster", GVR: routes, ClusterScoped: true, Refs: []referent.EdgeDefinition{},
		})
		w.contents[tls] = "1"
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.put(proxies, "p", map[string]any{"service": "s", "in": "elsewhere"})
		w.put(proxies, "other", map[string]any{"service": "s", "cluster": "c"})
		w.Configure(definitions)
		w.pass(time.Second)
		other := reference.Ref{Kind: proxy.Kind, Name: "other"}
		require.NotEmpty(t, w.State("ns", other).Entries)
		var read []string
		w.client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			read = append(read, action.GetResource().Resource+" "+action.GetNamespace())
			if action.GetNamespace() == "elsewhere" {
				return true, nil, apierrors.NewForbidden(services.GroupResource(), "s", errors.New("no permission"))
			}
			return false, nil, nil
		})
		w.contents[tls] = "2" // behind the watch
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy, other})
		require.NoError(t, err)
		require.NotNil(t, states[proxy].Hold)
		assert.Contains(t, states[proxy].Hold.Reason, "the namespace is not watched")
		assert.NotEmpty(t, states[other].Entries)
		assert.NotEqual(t, w.State("ns", other).Entries, states[other].Entries, "the other one is read")
		assert.NotContains(t, read, services.Resource+" elsewhere")
		assert.Contains(t, read, routes.Resource+" ", "what has no namespace is watched")
		assert.Empty(t, refused)
	})
}

// A permission that is withdrawn from the reads alone shows in no watch.
func TestARefusedLiveReadIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused []referent.Key
		w := newWorldWith(t, chain.Options{ReadRefused: func(key referent.Key) { refused = append(refused, key) }})
		w.graph()
		var answer error
		w.client.PrependReactor("get", services.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return answer != nil, nil, answer
		})
		ask := func() {
			states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
			require.NoError(t, err)
			assert.NotEmpty(t, states[proxy].Entries, "the graph answers where the API server does not")
		}
		ask()
		answer = errors.New("no answer")
		ask()
		assert.Empty(t, refused)
		answer = apierrors.NewForbidden(services.GroupResource(), "s", errors.New("no permission"))
		ask()
		assert.Equal(t, []referent.Key{{Group: "kroxylicious.io", Resource: "kafkaservices", Namespace: "ns", Name: "s"}}, refused)
	})
}
