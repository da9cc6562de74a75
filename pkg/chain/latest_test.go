package chain

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// referring returns an object that refers to so many Secrets.
func referring(t *testing.T) func(namespace, name string, references int) *referent.Object {
	t.Helper()
	compiled, faults := referent.Compile(nil, []referent.Definition{{
		ID: "proxies", GVR: schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"},
		Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secrets[*]"}},
	}}, "example.org/checksum")
	require.Empty(t, faults)
	return func(namespace, name string, references int) *referent.Object {
		names := make([]any, references)
		for i := range names {
			names[i] = fmt.Sprint("s", i)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secrets": names}}}
		object.SetNamespace(namespace)
		object.SetName(name)
		return compiled.Resources()[0].Read(object)
	}
}

// A tenant with many objects that have many references must not fill the memory.
func TestLatestKeepsTheReferencesThatANamespaceMayHave(t *testing.T) {
	t.Parallel()
	object := referring(t)
	const each, most = 20, 10
	l := &latest{most: each * most}
	set := func(namespace, name string, references int) int {
		kept, _ := l.set("uid", object(namespace, name, references))
		return kept.References()
	}
	for i := range most {
		require.Equal(t, each, set("tenant", fmt.Sprint("p", i), each))
	}
	assert.Zero(t, set("tenant", "beyond", each))
	assert.Equal(t, each, set("tenant", "p0", each), "what is kept remains when it is read again")
	assert.Equal(t, each, set("other", "p0", each), "other namespaces have their own bound")
	assert.False(t, l.fits("tenant"), "there are too many still")

	assert.Equal(t, 1, set("tenant", "p1", 1))
	assert.False(t, l.fits("tenant"), "one too many")
	l.drop(object("tenant", "p1", 1).Key(), "uid")
	assert.True(t, l.fits("tenant"), "the object that was one too many is gone")
	assert.False(t, l.fits("other"), "nothing is left out there")
	assert.Equal(t, each, set("tenant", "beyond", each))
	assert.False(t, l.fits("tenant"), "all are kept")

	for key := range l.objects {
		l.drop(key, "uid")
	}
	assert.Empty(t, l.references)
}

func TestBoundsOfANewChain(t *testing.T) {
	t.Parallel()
	c := New(Options{Log: logr.Discard()})
	assert.Equal(t, referent.MaxLinks, c.evaluator.sources.mostReferences, "with more, the graph would hold the whole namespace")
	assert.Equal(t, defaultSpare, c.history.spare)
}
