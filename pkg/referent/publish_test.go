package referent_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func annotated(value string) func(*unstructured.Unstructured) {
	return with(map[string]any{annotation: value}, "metadata", "annotations")
}

func TestPublicationIsDueOnlyWhereItDiffers(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	service := map[string]any{"host": "a", "tls": map[string]any{"certificateRef": named("tls")}}
	value, due := w.Publication(key("services/s"))
	require.True(t, due, "nothing is published yet")
	w.set("services/s", service, annotated(value))
	assert.Zero(t, w.Evaluate().Evaluated, "our own write changes nothing")
	_, due = w.Publication(key("services/s"))
	assert.False(t, due, "the digest is published")
	w.set("services/s", service, annotated("v1:x"))
	again, due := w.Publication(key("services/s"))
	assert.True(t, due, "another writer has changed it")
	assert.Equal(t, value, again)

	w.set("services/s", service, annotated(value), with(ready(1, "False"), "status"))
	w.config("secret/tls", "2")
	w.Evaluate()
	_, due = w.Publication(key("services/s"))
	assert.False(t, due, "held: what is there is the last known good")
	_, due = w.Publication(key("clusters/c1"))
	assert.False(t, due, "not asked for")
	_, due = w.Publication(key("services/unknown"))
	assert.False(t, due, "there is no such object")
}

func TestRotationOfTheKeyPublishesNothing(t *testing.T) {
	t.Parallel()
	compiled := compile(t, kafka()...)
	services, _ := compiled.Resource(gvr("services").GroupResource())
	publication := func(keys, now, content string) (string, bool) {
		graph, err := referent.NewGraph(compiled, digesttest.Ring(t, keys))
		require.NoError(t, err)
		graph.SetSource(services, "", referent.SourceSynced)
		graph.Put(services.Read(object("s", map[string]any{"tls": map[string]any{"certificateRef": named("t")}}, annotated(now))))
		graph.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "t"}, state(t, keys, content))
		graph.Evaluate()
		return graph.Publication(key("services/s"))
	}
	first, due := publication("a", "", "1")
	require.True(t, due, "nothing is published yet")
	kept, due := publication("ab", first, "1")
	assert.False(t, due, "only the key has changed")
	assert.Equal(t, first, kept)
	second, due := publication("ab", first, "2")
	assert.True(t, due, "but a change of the content is published, under the newest key")
	newest, _ := digesttest.Ring(t, "ab").Newest()
	assert.Contains(t, second, "v1:"+string(newest.ID))
	third, due := publication("b", first, "1")
	assert.True(t, due, "under a lost key nothing can be compared")
	assert.NotEqual(t, first, third)
}

func TestPublishedChecksumIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		referent.Definition{ID: "a", GVR: gvr("a"), Checksum: referent.ChecksumPublished, Self: referent.SelfDefinition{Rule: referent.SelfNone}},
		referent.Definition{ID: "b", GVR: gvr("b"), Refs: []referent.EdgeDefinition{{Resource: "a", Name: "spec.a"}}},
	)
	w.set("b/o", map[string]any{"a": "o"})
	w.set("a/o", nil)
	w.Evaluate()
	without := w.entry("b/o")
	require.NotEmpty(t, without, "an object that refers to nothing has no annotation: its conditions show that it was looked at")
	w.set("a/o", nil, annotated("x"))
	w.Evaluate()
	one := w.entry("b/o")
	w.set("a/o", nil, annotated("y"))
	w.Evaluate()
	assert.Len(t, map[string]bool{without: true, one: true, w.entry("b/o"): true}, 3)
}

func TestAnAnnotationThatIsNoChecksumHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		referent.Definition{ID: "a", GVR: gvr("a"), Checksum: referent.ChecksumPublished},
		referent.Definition{ID: "b", GVR: gvr("b"), Publish: true, Refs: []referent.EdgeDefinition{{Resource: "a", Name: "spec.a"}}},
	)
	w.set("b/o", map[string]any{"a": "o"})
	w.set("a/o", nil, annotated(strings.Repeat("x", 1024)))
	w.Evaluate()
	require.NotEmpty(t, w.entry("b/o"))
	value, _ := w.Publication(key("b/o"))
	w.set("b/o", map[string]any{"a": "o"}, annotated(strings.Repeat("x", 200_000)))
	again, due := w.Publication(key("b/o"))
	assert.True(t, due, "it is replaced")
	assert.Equal(t, value, again)

	w.set("a/o", nil, annotated(strings.Repeat("x", 1025)))
	w.Evaluate()
	hold := w.Hold(key("b/o"))
	require.NotNil(t, hold)
	assert.Equal(t, referent.Invalid, hold.Reason)
	assert.Equal(t, key("a/o"), hold.Node)
	assert.Equal(t, "annotation "+annotation+" has 1025 bytes: at most 1024 are a checksum", hold.Detail)
}

// Annotations of objects must not fill the memory.
func TestAnAnnotationThatIsNoChecksumIsNotKept(t *testing.T) { //nolint:paralleltest // it measures the memory of the whole process
	w := newWorld(t,
		referent.Definition{ID: "a", GVR: gvr("a"), Checksum: referent.ChecksumPublished},
		referent.Definition{ID: "b", GVR: gvr("b"), Publish: true},
	)
	before := heap()
	const many = 200
	for i := range many {
		w.set(fmt.Sprintf("a/o%d", i), nil, annotated(strings.Repeat("x", 200_000)))
		w.set(fmt.Sprintf("b/o%d", i), nil, annotated(strings.Repeat("y", 200_000)))
	}
	w.Evaluate()
	assert.Less(t, heap()-before, int64(many*20_000))
	assert.NotNil(t, w.Hold(key("a/o7")), "the graph is in use until here")
}

// heap is the size of what is in use.
func heap() int64 {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestKindChoosesReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("a"), Refs: []referent.EdgeDefinition{
		{Resource: "configmaps", Name: "spec.trust.name", Kind: "ConfigMap"}, {Resource: "secrets", Name: "spec.trust.name", Kind: "Secret"},
	}})
	for kind, want := range map[any][]referent.Key{
		"ConfigMap": keys("configmap/t"), "Secret": keys("secret/t"), "Other": {}, nil: keys("configmap/t", "secret/t"), "": keys("configmap/t", "secret/t"),
	} {
		w.set("a/o", map[string]any{"trust": map[string]any{"name": "t", "kind": kind}})
		w.Evaluate()
		assert.Equal(t, append(want, key("a/o")), w.Below(key("a/o")), kind)
	}
}

// crossing are routes that refer to gateways of other namespaces, and services that classes without a namespace list.
func crossing(allowed ...string) []referent.Definition {
	return []referent.Definition{
		{ID: "gateways", GVR: gvr("gateways")},
		{ID: "routes", GVR: gvr("routes"), Refs: []referent.EdgeDefinition{
			{Resource: "gateways", Name: "spec.parents[*].name", Namespace: "spec.parents[*].namespace", Namespaces: allowed},
		}},
		{ID: "classes", GVR: gvr("classes"), ClusterScoped: true, Referrers: []referent.EdgeDefinition{
			{Resource: "gateways", Name: "spec.class", Namespaces: allowed},
		}},
	}
}

func inNamespace(namespace string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetNamespace(namespace) }
}

func TestReferencesIntoOtherNamespaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed []string
		denied  bool
	}{
		"denied by default": {nil, true},
		"another one":       {[]string{"x"}, true},
		"allowed":           {[]string{"x", "infra"}, false},
		"all":               {[]string{"*"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, crossing(c.allowed...)...)
			w.set("classes/c", nil, inNamespace(""))
			w.Evaluate()
			class := referent.Key{Group: "example.io", Resource: "classes", Name: "c"}
			before, hold := w.State(class)
			require.Nil(t, hold)
			w.set("gateways/g", map[string]any{"class": "c"}, inNamespace("infra"))
			w.set("gateways/g", nil)
			w.set("routes/r", map[string]any{"parents": []any{
				map[string]any{"name": "g", "namespace": "infra"}, map[string]any{"name": "g"},
			}})
			w.Evaluate()
			hold = w.Hold(key("routes/r"))
			after, classHold := w.State(class)
			require.Nil(t, classHold, "a child of another namespace holds no parent")
			gateway := referent.Key{Group: "example.io", Resource: "gateways", Namespace: "infra", Name: "g"}
			if !c.denied {
				assert.Nil(t, hold)
				assert.Contains(t, w.Below(key("routes/r")), gateway)
				assert.NotEqual(t, before, after)
				assert.Empty(t, w.Problems(gateway))
				return
			}
			require.NotNil(t, hold)
			assert.Equal(t, referent.Denied, hold.Reason)
			assert.Equal(t, "referents[1].refs[0].namespaces does not allow the reference to gateways.example.io/g in namespace infra", hold.Detail)
			assert.Equal(t, before, after, "nor does it change one")
			assert.Equal(t, []string{
				"referents[2].referrers[0].namespaces does not allow classes.example.io/c to be referred to by gateways.example.io/g in namespace infra",
			}, w.Problems(gateway))
		})
	}
}

func TestReferrersOfAllowedNamespacesMustBeKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crossing("infra")...)
	w.set("classes/c", nil, inNamespace(""))
	class := referent.Key{Group: "example.io", Resource: "classes", Name: "c"}
	for namespace, held := range map[string]bool{"infra": true, "other": false} {
		w.SetSource(w.resource("gateways"), namespace, referent.SourceForbidden)
		w.Evaluate()
		assert.Equal(t, held, w.Hold(class) != nil, namespace)
		w.SetSource(w.resource("gateways"), namespace, referent.SourceSynced)
	}
}

// With --namespaces, the changes of objects elsewhere are not seen.
func TestReferrersOfAllowedNamespacesMustBeWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed []string
		hold    string
	}{
		"only its own": {nil, ""},
		"watched":      {[]string{"n"}, ""},
		"all":          {[]string{"*"}, ""},
		"not watched": {
			[]string{"n", "elsewhere", "far"},
			"services.example.io/s: forbidden (the namespace elsewhere is not watched, and clusters.example.io in it can refer to this one)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := compile(t,
				referent.Definition{ID: "clusters", GVR: gvr("clusters")},
				referent.Definition{ID: "services", GVR: gvr("services"), Referrers: []referent.EdgeDefinition{
					{Resource: "clusters", Name: "spec.to.name", Namespace: "spec.to.namespace", Namespaces: c.allowed},
				}})
			graph, err := referent.NewGraph(compiled, digesttest.Ring(t, "a"))
			require.NoError(t, err)
			for _, resource := range compiled.Resources() {
				graph.SetSource(resource, "n", referent.SourceSynced)
			}
			w := world{TB: t, Graph: graph, schema: compiled}
			w.set("services/s", nil)
			w.Evaluate()
			if hold := w.Hold(key("services/s")); c.hold == "" {
				assert.Nil(t, hold)
			} else {
				require.NotNil(t, hold)
				assert.Equal(t, c.hold, hold.String())
			}
		})
	}
}

// TestDifferentChildrenHaveDifferentDigests draws sets of children with names, contents and absences that resemble each
// other: two digests are equal if and only if the sets are.
func TestDifferentChildrenHaveDifferentDigests(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 1_500 {
		w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("a"), Self: referent.SelfDefinition{Rule: referent.SelfNone}, Refs: []referent.EdgeDefinition{
			{Resource: "secrets", Name: "spec.s[*]", Optional: true}, {Resource: "configmaps", Name: "spec.c[*]", Optional: true},
		}})
		set := map[string]string{}
		lists := map[string][]any{}
		for range random.IntN(4) {
			kind, name := []string{"s", "c"}[random.IntN(2)], []string{"a", "aa", "a-a", "b"}[random.IntN(4)]
			lists[kind] = append(lists[kind], name)
			if set[kind+"/"+name] == "" {
				set[kind+"/"+name] = []string{"absent", "1", "2"}[random.IntN(3)]
			}
		}
		w.set("a/o", map[string]any{"s": lists["s"], "c": lists["c"]})
		for name, content := range set {
			full := map[byte]string{'s': "secret", 'c': "configmap"}[name[0]] + name[1:]
			if content == "absent" {
				w.absent(full)
			} else {
				w.config(full, content)
			}
		}
		w.Evaluate()
		text, entry := fmt.Sprint(set), w.entry("a/o")
		require.NotEmpty(t, entry)
		if before, ok := seen[entry]; ok {
			require.Equal(t, before, text, "two sets have one digest")
		}
		seen[entry] = text
	}
	sets := map[string]bool{}
	for _, text := range seen {
		require.False(t, sets[text], "one set has two digests: %s", text)
		sets[text] = true
	}
	assert.Greater(t, len(seen), 100)
}

// TestDifferentContentsHaveDifferentDigests: values that are written alike are not taken for each other.
func TestDifferentContentsHaveDifferentDigests(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, spec := range []map[string]any{
		nil,
		{},
		{"a": nil},
		{"a": ""},
		{"a": "null"},
		{"a": "1"},
		{"a": int64(1)},
		{"a": true},
		{"a": "true"},
		{"a": []any{}},
		{"a": map[string]any{}},
		{"a": []any{"b", "c"}},
		{"a": []any{"bc"}},
		{"a": []any{[]any{"b"}, "c"}},
		{"a": []any{"b", []any{"c"}}},
		{"a": "b", "c": "d"},
		{"a": "bcd"},
		{"a": map[string]any{"b": "c"}},
		{"a": 1.5},
		{"a": "1.5"},
		{"a": []any{"c", "b"}},
	} {
		w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("a")})
		w.set("a/o", spec)
		w.Evaluate()
		other, twice := seen[w.entry("a/o")]
		assert.False(t, twice, "%d and %d", i, other)
		seen[w.entry("a/o")] = i
	}
	float := newWorld(t, referent.Definition{ID: "a", GVR: gvr("a")})
	float.set("a/o", map[string]any{"a": 1.0})
	float.Evaluate()
	assert.Equal(t, 6, seen[float.entry("a/o")], "a whole number is one number")
}
