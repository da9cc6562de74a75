package chain_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// A read that never ends would keep its namespace held for ever.
func TestReadThatHangsIsGivenUpAfterThirtySecondsAndRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hang := func(yes bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hanging = yes
		}
		hang(true)
		w.graph()
		require.Equal(t, "secret/tls is unsynced: its content has not been read yet", w.hold())
		hang(false) // the read that is under way hangs on
		w.pass(28 * time.Second)
		assert.NotEmpty(t, w.hold(), "a slow answer is waited for")
		w.pass(13 * time.Second)
		assert.Empty(t, w.hold(), "no other read follows")
	})
}

// The API server waits for the answer of the webhook: a question must not wait for a graph that makes no progress.
func TestQuestionWaitsHalfASecondForTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stuck := chain.New(chain.Options{Client: w.client, Config: w, Ring: w.currentRing, Log: logr.Discard()}) // it is not started
		began := time.Now()
		states, err := chain.ReadLive(t.Context(), w, stuck, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.NotNil(t, states[proxy].Hold)
		assert.LessOrEqual(t, time.Since(began), time.Second/2)
	})
}

// A namespace may have the references of some objects that have so many each.
const objectReferences, namespaceReferences = 20, 2_000

// boundedWorld is one in which a namespace may have fewer references than by default.
func boundedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.BoundReferences(namespaceReferences)
	return w
}

// references refers to some Services.
func references(prefix string) map[string]any {
	names := make([]any, objectReferences)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return map[string]any{"services": names}
}

// full has almost as many references as a namespace may have, and an object that a list has read before it broke off.
func full(t *testing.T) (w *world, definitions []referent.Definition, gone *unstructured.Unstructured) {
	t.Helper()
	w, definitions = boundedWorld(t), proxyToSecret()
	definitions[1].Refs[0].Name, definitions[1].Refs[0].Optional = "spec.services[*]", true
	for i := range namespaceReferences/objectReferences - 1 {
		w.put(proxies, fmt.Sprint("full", i), references("s"))
	}
	gone = &unstructured.Unstructured{Object: map[string]any{"spec": references("s")}}
	gone.SetNamespace("ns")
	gone.SetName("gone")
	gone.SetUID("uid-0")
	return w, definitions, gone
}

// A list that breaks off has read objects that no event names: those that are deleted before the next list.
func TestReferencesThatABrokenListHasReadDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, definitions, gone := full(t)
		w.put(proxies, "p", references("s"))
		allow := w.refuse(proxies, errors.New("the list breaks off"))
		lists := w.lists(proxies.Resource)
		w.Configure(definitions)
		w.pass(time.Second)
		w.Watching(proxies).Reduce(gone)
		before := lists()
		allow()
		w.pass(10 * time.Second)
		assert.Empty(t, w.hold())
		w.pass(20 * time.Second)
		assert.Equal(t, before+2, lists(), "nothing is left of it")
	})
}

func TestReferencesThatABrokenLaterListHasReadDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, definitions, gone := full(t)
		w.Configure(definitions)
		w.pass(time.Minute)
		lists := w.lists(proxies.Resource)
		w.Watching(proxies).Reduce(gone)
		w.Watching(proxies).Failed(t.Context(), errors.New("the list breaks off"))
		w.put(proxies, "p", references("s"))
		w.pass(time.Second)
		require.Contains(t, w.hold(), "too-many")
		w.pass(time.Minute)
		assert.Empty(t, w.hold())
		w.Watching(proxies).Failed(t.Context(), errors.New("the watch breaks off"))
		w.pass(time.Minute + time.Second)
		assert.Equal(t, 1, lists(), "nothing is left of it")
	})
}

// What a tenant may have is bounded, in memory, too. What was left out is read as soon as the bound allows.
func TestReferencesBeyondTheBoundAreReadOnceTheBoundAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := boundedWorld(t)
		definitions := proxyToSecret()
		definitions[1].Refs[0].Name, definitions[1].Refs[0].Optional = "spec.services[*]", true
		for i := range namespaceReferences / objectReferences {
			w.put(proxies, fmt.Sprint("full", i), references("s"))
		}
		w.Configure(definitions)
		w.pass(time.Second)
		w.put(proxies, "p", references("only"))
		w.pass(time.Second)
		nodes := func() int {
			picture, err := w.Picture("ns", proxy.String())
			require.NoError(t, err)
			return len(picture.Nodes)
		}
		assert.Contains(t, w.hold(), "too-many")
		assert.Equal(t, 1, nodes(), "its references are left out")

		w.remove("full0")
		w.pass(time.Second)
		assert.Empty(t, w.hold())
		assert.Equal(t, 1+objectReferences, nodes())

		lists := w.lists(proxies.Resource)
		w.remove("full1")
		w.put(proxies, "full0", references("s"))
		w.pass(time.Minute)
		require.Zero(t, lists(), "nothing is left out")
		for i := range 3 { // each object is one too many, until another one is removed
			w.put(proxies, fmt.Sprint("later", i), references("s"))
			w.pass(150 * time.Millisecond)
			w.remove(fmt.Sprint("full", 10+i))
			w.pass(150 * time.Millisecond)
		}
		assert.Equal(t, 1, lists(), "the second list waits for a second")
		w.pass(2 * time.Second)
		assert.Equal(t, 2, lists())
	})
}
