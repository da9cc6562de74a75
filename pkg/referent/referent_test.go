package referent_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// world is a Graph whose sources are synced, with shorthands.
type world struct {
	testing.TB
	*referent.Graph
	schema *referent.Schema
}

func newWorld(t testing.TB, definitions ...referent.Definition) world {
	t.Helper()
	return newWorldOf(t, compile(t, definitions...))
}

func newWorldOf(t testing.TB, compiled *referent.Schema) world {
	t.Helper()
	graph, err := referent.NewGraph(compiled, digesttest.Ring(t, "a"))
	require.NoError(t, err)
	for _, resource := range compiled.Resources() {
		graph.SetSource(resource, "", referent.SourceSynced)
	}
	return world{TB: t, Graph: graph, schema: compiled}
}

func (w world) resource(name string) *referent.Resource {
	w.Helper()
	found, ok := w.schema.Resource(gvr(name).GroupResource())
	require.True(w, ok, name)
	return found
}

// set sets an object "clusters/name" of namespace n with a spec.
func (w world) set(name string, spec map[string]any, changes ...func(*unstructured.Unstructured)) {
	w.Helper()
	resource, name, _ := strings.Cut(name, "/")
	w.Put(w.resource(resource).Read(object(name, spec, changes...)))
}

func (w world) config(name, content string) {
	w.Helper()
	ref, err := reference.Parse(name)
	require.NoError(w, err)
	w.SetConfig("n", ref, state(w, "a", content))
}

func (w world) absent(name string) {
	w.Helper()
	ref, err := reference.Parse(name)
	require.NoError(w, err)
	w.SetConfig("n", ref, digest.State{Absent: true})
}

func state(t testing.TB, keys, content string) digest.State {
	t.Helper()
	s := digest.State{UID: "uid-" + content, ResourceVersion: "1", Entries: map[digest.KeyID]digest.Entry{}}
	for _, key := range digesttest.Ring(t, keys).Keys() {
		mac := key.MAC("content")
		mac.Text(content)
		s.Entries[key.ID] = mac.Sum()
	}
	return s
}

// object is ready in its generation 1.
func object(name string, spec map[string]any, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "n", "name": name, "uid": "uid-" + name, "generation": int64(1), "resourceVersion": "1"},
		"status":   ready(1, "True"),
	}}
	if spec != nil {
		o.Object["spec"] = maps.Clone(spec)
	}
	for _, change := range changes {
		change(o)
	}
	return o
}

func ready(observed int64, status string) map[string]any {
	return map[string]any{
		"observedGeneration": observed,
		"conditions":         []any{map[string]any{"type": "ResolvedRefs", "status": status, "reason": "R"}},
	}
}

func with(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func named(name string) map[string]any { return map[string]any{"name": name} }

// tangle is a valid graph below proxies/p.
func tangle(t testing.TB) world {
	t.Helper()
	w := newWorld(t, kafka()...)
	w.set("proxies/p", map[string]any{"replicas": int64(1)})
	w.set("clusters/c1", map[string]any{
		"proxyRef": named("p"), "serviceRef": named("s"), "filterRefs": []any{named("f1"), named("f2")},
	})
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("s")})
	w.set("services/s", map[string]any{"host": "a", "tls": map[string]any{"certificateRef": named("tls")}})
	w.set("filters/f1", map[string]any{"type": "x", "configRef": named("conf")})
	w.set("filters/f2", map[string]any{"type": "y"})
	w.config("secret/tls", "1")
	w.absent("configmap/conf")
	w.Evaluate()
	return w
}

// entry is the Entry of the node for a workload, empty if it is held.
func (w world) entry(text string) string {
	w.Helper()
	s, hold := w.State(key(text))
	if hold != nil {
		return ""
	}
	for _, entry := range s.Entries {
		return entry.Short()
	}
	require.Fail(w, "no Entry")
	return ""
}
