package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func changed(e referent.Evaluation) []string {
	var all []string
	for _, change := range e.Changes {
		all = append(all, change.Key.String())
	}
	return all
}

func TestValidGraphIsNotHeld(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	assert.Nil(t, w.Hold(key("proxies/p")))
	assert.NotEmpty(t, w.entry("proxies/p"))
	assert.Empty(t, w.UnreadConfig())
	assert.Equal(t, 8, w.Len())
}

func TestRelevantChangeChangesEntryOfRoot(t *testing.T) {
	t.Parallel()
	service := func(host string) map[string]any {
		return map[string]any{"host": host, "tls": map[string]any{"certificateRef": named("tls")}}
	}
	for name, change := range map[string]func(w world){
		"a Secret's content":      func(w world) { w.config("secret/tls", "2") },
		"an optional one appears": func(w world) { w.config("configmap/conf", "1") },
		"a service's spec":        func(w world) { w.set("services/s", service("b")) },
		"a filter's spec":         func(w world) { w.set("filters/f2", map[string]any{"type": "z"}) },
		"a cluster drops a filter": func(w world) {
			w.set("clusters/c1", map[string]any{"proxyRef": named("p"), "serviceRef": named("s"), "filterRefs": []any{named("f1")}})
		},
		"a cluster is added":   func(w world) { w.set("clusters/c3", map[string]any{"proxyRef": named("p"), "serviceRef": named("s")}) },
		"a cluster is deleted": func(w world) { w.Delete(key("clusters/c2")) },
		"a cluster leaves":     func(w world) { w.set("clusters/c2", map[string]any{"proxyRef": named("q"), "serviceRef": named("s")}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tangle(t)
			before := w.entry("proxies/p")
			change(w)
			assert.Contains(t, changed(w.Evaluate()), "proxies.example.io/p")
			assert.Nil(t, w.Hold(key("proxies/p")))
			assert.NotEqual(t, before, w.entry("proxies/p"))
		})
	}
}

func TestIrrelevantChangeEvaluatesNothing(t *testing.T) {
	t.Parallel()
	service := map[string]any{"host": "a", "tls": map[string]any{"certificateRef": named("tls")}}
	for name, change := range map[string]func(w world){
		"the same object": func(w world) { w.set("services/s", service) },
		"a label":         func(w world) { w.set("services/s", service, with("b", "metadata", "labels", "a")) },
		"a status field":  func(w world) { w.set("services/s", service, with("b", "status", "noise")) },
		"the version":     func(w world) { w.set("services/s", service, with("2", "metadata", "resourceVersion")) },
		"the uid":         func(w world) { w.set("services/s", service, with("2", "metadata", "uid")) },
		"its own annotation": func(w world) {
			w.set("services/s", service, with(map[string]any{annotation: "v1:x"}, "metadata", "annotations"))
		},
		"replicas of the proxy": func(w world) { w.set("proxies/p", map[string]any{"replicas": int64(9)}) },
		"a no-op Secret write": func(w world) {
			s := state(t, "a", "1")
			s.ResourceVersion, s.UID = "2", "other"
			w.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "tls"}, s)
		},
		"an unrelated Secret": func(w world) { w.config("secret/other", "1") },
		"a synced source":     func(w world) { w.SetSource(w.resource("filters"), "", referent.SourceSynced) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tangle(t)
			change(w)
			assert.Equal(t, referent.Evaluation{}, w.Evaluate())
		})
	}
}

// The generation of an object that is created again is 1 again, whatever its content.
func TestSelfGenerationCountsEditsAndCreationAfterDeletion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		counts bool
	}{
		"an edit":                        {with(int64(2), "metadata", "generation"), true},
		"deletion and creation":          {with("other", "metadata", "uid"), true},
		"a label":                        {with("b", "metadata", "labels", "a"), false},
		"a write without another effect": {with("2", "metadata", "resourceVersion"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, referent.Definition{
				ID: "services", GVR: gvr("services"), Self: referent.SelfDefinition{Rule: referent.SelfGeneration},
			})
			w.set("services/s", nil)
			w.Evaluate()
			before := w.entry("services/s")
			w.set("services/s", nil, c.change)
			w.Evaluate()
			assert.Equal(t, c.counts, before != w.entry("services/s"))
		})
	}
}

// Below a resource with crc32, objects count as Kroxylicious counts them: by uid and generation, or by uid and resourceVersion.
func TestBelowCRC32VersionsCountInsteadOfContents(t *testing.T) {
	t.Parallel()
	secret := func(change func(*digest.State)) func(w world) {
		return func(w world) {
			s := state(w, "a", "1")
			change(&s)
			w.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "tls"}, s)
		}
	}
	child := func(changes ...func(*unstructured.Unstructured)) func(w world) {
		return func(w world) { w.set("children/c", nil, changes...) }
	}
	label := with("b", "metadata", "labels", "a")
	for name, c := range map[string]struct {
		change func(w world)
		counts bool
	}{
		"a label of a Secret":     {secret(func(s *digest.State) { s.ResourceVersion = "2" }), true},
		"a Secret is recreated":   {secret(func(s *digest.State) { s.UID = "other" }), true},
		"a label":                 {child(label, with("2", "metadata", "resourceVersion")), false},
		"an edit":                 {child(with(int64(2), "metadata", "generation")), true},
		"an object is recreated":  {child(with("other", "metadata", "uid")), true},
		"content without an edit": {child(with("b", "spec", "a")), false},
		"the same Secret, again":  {secret(func(*digest.State) {}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t,
				referent.Definition{ID: "children", GVR: gvr("children"), Algorithm: referent.AlgorithmCRC32},
				referent.Definition{
					ID: "roots", GVR: gvr("roots"), Algorithm: referent.AlgorithmCRC32,
					Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}, {Resource: "children", Name: "spec.child"}},
				})
			w.set("roots/r", map[string]any{"secret": "tls", "child": "c"})
			w.set("children/c", nil)
			w.config("secret/tls", "1")
			w.Evaluate()
			before := w.entry("roots/r")
			require.NotEmpty(t, before)
			c.change(w)
			w.Evaluate()
			assert.Equal(t, c.counts, before != w.entry("roots/r"))
		})
	}
}

func TestOneLeafEvaluatesOnlyItsAncestors(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.set("filters/f2", map[string]any{"type": "z"})
	done := w.Evaluate()
	assert.Equal(t, 3, done.Evaluated, "f2, c1 and p")
	assert.Equal(t, []referent.Change{
		{Key: key("clusters/c1"), Causes: keys("filters/f2")},
		{Key: key("filters/f2"), Causes: keys("filters/f2")},
		{Key: key("proxies/p"), Causes: keys("filters/f2")},
	}, done.Changes)
	assert.Equal(t, keys("proxies/p", "clusters/c1", "filters/f2"), w.Path(key("proxies/p"), key("filters/f2")))
	assert.Nil(t, w.Path(key("filters/f2"), key("proxies/p")))
	assert.Nil(t, w.Path(key("filters/unknown"), key("filters/f2")))
	assert.Nil(t, w.Path(key("proxies/p"), key("filters/unknown")))
	assert.Equal(t, keys("filters/f2"), w.Path(key("filters/f2"), key("filters/f2")))
}

func TestManyChangesAtOnceAreOne(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.config("secret/tls", "2")
	w.set("filters/f2", map[string]any{"type": "z"})
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("s"), "x": "y"})
	for _, change := range w.Evaluate().Changes {
		if change.Key == key("proxies/p") {
			assert.Equal(t, keys("secret/tls", "clusters/c2", "filters/f2"), change.Causes)
			return
		}
	}
	require.Fail(t, "the proxy has not changed")
}

func TestThereAndBackRestoresTheEntry(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	before := w.entry("proxies/p")
	w.config("secret/tls", "2")
	w.Evaluate()
	w.config("secret/tls", "1")
	w.Evaluate()
	assert.Equal(t, before, w.entry("proxies/p"))

	w.Delete(key("services/s"))
	w.Evaluate()
	assert.Empty(t, w.entry("proxies/p"))
	w.set("services/s", map[string]any{"host": "a", "tls": map[string]any{"certificateRef": named("tls")}}, with("new", "metadata", "uid"))
	w.Evaluate()
	require.Equal(t, keys("secret/tls"), w.UnreadConfig())
	w.config("secret/tls", "1")
	w.Evaluate()
	assert.Equal(t, before, w.entry("proxies/p"), "created again with the same content")
}

func TestCausesGatherWhileHeld(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.set("services/s", map[string]any{"host": "b"}, with(ready(1, "False"), "status"))
	w.set("filters/f2", map[string]any{"type": "z"})
	for _, change := range w.Evaluate().Changes {
		if change.Held {
			assert.Empty(t, change.Causes, change.Key)
		}
	}
	require.Equal(t, referent.NotReady, w.Hold(key("proxies/p")).Reason)
	w.set("services/s", map[string]any{"host": "b"})
	var causes []referent.Key
	for _, change := range w.Evaluate().Changes {
		if change.Key == key("proxies/p") {
			causes = change.Causes
		}
	}
	assert.Equal(t, keys("filters/f2", "services/s"), causes, "both take effect now")
}

func TestConfigObjectsThatNothingRefersToAreDropped(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.set("services/s", map[string]any{"host": "a"})
	w.Evaluate()
	w.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "tls"}, digest.State{Absent: true})
	assert.Equal(t, 7, w.Len())

	w.set("services/s", map[string]any{"tls": map[string]any{"certificateRef": named("tls")}})
	w.Evaluate()
	assert.Equal(t, keys("secret/tls"), w.UnreadConfig(), "it is referred to again, and must be read")
	assert.Equal(t, referent.Unsynced, w.Hold(key("proxies/p")).Reason)
}

func TestDeletingEverythingLeavesNothing(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	for _, name := range []string{"proxies/p", "clusters/c1", "clusters/c2", "services/s", "filters/f1", "filters/f2"} {
		w.Delete(key(name))
		w.Evaluate()
	}
	assert.Zero(t, w.Len())
	assert.Equal(t, referent.Missing, w.Hold(key("proxies/p")).Reason)
	state, hold := w.State(key("proxies/p"))
	assert.True(t, state.Absent, "the object was deleted")
	assert.NotNil(t, hold)
	assert.Equal(t, "map[] 0", w.Sizes())
}

func TestBelowNamesAllThatAnObjectDependsOn(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	assert.Len(t, w.Below(key("proxies/p")), 8)
}

func TestGraphNeedsAKey(t *testing.T) {
	t.Parallel()
	_, err := referent.NewGraph(compile(t), digest.Ring{})
	require.ErrorIs(t, err, digest.ErrNoKey)
}

func TestAGraphHasAnEntryUnderEachKey(t *testing.T) {
	t.Parallel()
	compiled := compile(t, kafka()...)
	both, err := referent.NewGraph(compiled, digesttest.Ring(t, "ab"))
	require.NoError(t, err)
	filters, _ := compiled.Resource(gvr("filters").GroupResource())
	both.SetSource(filters, "", referent.SourceSynced)
	both.Put(filters.Read(object("f", map[string]any{"configRef": named("c")})))
	ref := reference.Ref{Kind: reference.ConfigMap, Name: "c"}
	both.SetConfig("n", ref, state(t, "a", "1"))
	both.Evaluate()
	assert.Equal(t, referent.Unsynced, both.Hold(key("filters/f")).Reason, "under one key nothing is known")
	both.SetConfig("n", ref, state(t, "ab", "1"))
	both.Evaluate()
	s, hold := both.State(key("filters/f"))
	require.Nil(t, hold)
	require.Len(t, s.Entries, 2)

	for i, letter := range []byte("ab") {
		one, err := referent.NewGraph(compiled, digesttest.Ring(t, string(letter)))
		require.NoError(t, err)
		one.SetSource(filters, "", referent.SourceSynced)
		one.Put(filters.Read(object("f", map[string]any{"configRef": named("c")})))
		one.SetConfig("n", ref, state(t, string(letter), "1"))
		one.Evaluate()
		alone, hold := one.State(key("filters/f"))
		require.Nil(t, hold)
		id := digesttest.Ring(t, "ab").Keys()[i].ID
		assert.Equal(t, alone.Entries[id], s.Entries[id])
	}
}

func TestFewBelow(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	all := w.Below(key("proxies/p"))
	require.Greater(t, len(all), 3)
	for most := range len(all) + 2 {
		below, few := w.FewBelow(most, key("proxies/p"))
		assert.Equal(t, most >= len(all), few, "%d", most)
		if few {
			assert.Equal(t, all, below)
		} else {
			assert.Len(t, below, most+1, "it stops there")
		}
	}
}

// A published digest is under no key of ours: it counts under each of them, also while the ring has several.
func TestPublishedDigestCountsUnderEachKey(t *testing.T) {
	t.Parallel()
	compiled := compile(t,
		referent.Definition{ID: "a", GVR: gvr("a"), Checksum: referent.ChecksumPublished, Self: referent.SelfDefinition{Rule: referent.SelfNone}},
		referent.Definition{ID: "b", GVR: gvr("b"), Refs: []referent.EdgeDefinition{{Resource: "a", Name: "spec.a"}}},
		referent.Definition{ID: "c", GVR: gvr("c"), Refs: []referent.EdgeDefinition{{Resource: "b", Name: "spec.b"}}},
	)
	entries := func(published string, letters ...byte) map[digest.KeyID]digest.Entry {
		g, err := referent.NewGraph(compiled, digesttest.Ring(t, string(letters)))
		require.NoError(t, err)
		for _, resource := range compiled.Resources() {
			g.SetSource(resource, "", referent.SourceSynced)
		}
		w := world{TB: t, Graph: g, schema: compiled}
		w.set("a/o", nil, annotated(published))
		w.set("b/o", map[string]any{"a": "o"})
		w.set("c/o", map[string]any{"b": "o"})
		w.Evaluate()
		s, hold := w.State(key("c/o"))
		require.Nil(t, hold)
		return s.Entries
	}
	both, other := entries("x", 'a', 'b'), entries("y", 'a', 'b')
	require.Len(t, both, 2)
	for id, entry := range both {
		assert.NotEqual(t, entry, other[id], "under key %s the published digest does not count", id)
	}
	for _, letter := range []byte("ab") {
		for id, entry := range entries("x", letter) {
			assert.Equal(t, entry, both[id], "another ring changes the Entry under key %s", id)
		}
	}
}

func TestDeletedObjectIsReportedAndOneThatWasNeverThereIsNot(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("never")})
	assert.Equal(t, []referent.Change{{Key: key("clusters/c2"), Held: true}, {Key: key("proxies/p"), Held: true}}, w.Evaluate().Changes,
		"services/never was missing before, too")
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("s")})
	w.Evaluate()
	w.Delete(key("services/s"))
	assert.Equal(t, []referent.Change{
		{Key: key("clusters/c1"), Held: true},
		{Key: key("clusters/c2"), Held: true},
		{Key: key("proxies/p"), Held: true},
		{Key: key("services/s"), Held: true},
	}, w.Evaluate().Changes)
}
