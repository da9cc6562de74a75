package referent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// chain sets objects l0/o → l1/o → …, of which the last one has that spec.
func (w world) chain(depth int, last map[string]any) {
	w.Helper()
	for i := range depth {
		w.set(fmt.Sprintf("l%d/o", i), map[string]any{"next": "o"})
	}
	w.set(fmt.Sprintf("l%d/o", depth), last)
}

// causes make the last object of a chain one that cannot be used. The object is the one that is meant by the reason, or
// the Secret below it.
func causes() map[referent.Reason]func(w world, last string, depth int) {
	secret := map[string]any{"secret": named("s")}
	return map[referent.Reason]func(w world, last string, depth int){
		referent.Missing:  func(w world, last string, _ int) { w.Delete(key(last + "/o")) },
		referent.NotReady: func(w world, last string, _ int) { w.set(last+"/o", nil, with(ready(1, "False"), "status")) },
		referent.Stale: func(w world, last string, _ int) {
			w.set(last+"/o", map[string]any{"a": "b"}, with(int64(2), "metadata", "generation"))
		},
		referent.Forbidden:    func(w world, last string, _ int) { w.SetSource(w.resource(last), "", referent.SourceForbidden) },
		referent.NotInstalled: func(w world, last string, _ int) { w.SetSource(w.resource(last), "", referent.SourceNotInstalled) },
		referent.Unsynced:     func(w world, last string, _ int) { w.SetSource(w.resource(last), "n", referent.SourceUnsynced) },
		referent.Denied: func(w world, last string, _ int) {
			w.set(last+"/o", map[string]any{"secret": map[string]any{"name": "s", "namespace": "other"}})
		},
		referent.Invalid: func(w world, last string, _ int) {
			w.set(last+"/o", map[string]any{"secret": map[string]any{"name": "A/b"}})
		},
		referent.Cycle: func(w world, last string, _ int) { w.set(last+"/o", map[string]any{"same": "o"}) },
		referent.TooDeep: func(w world, last string, _ int) {
			w.set(last+"/o", map[string]any{"same": "d1"})
			for i := 1; i <= referent.MaxDepth; i++ {
				w.set(fmt.Sprintf("%s/d%d", last, i), map[string]any{"same": fmt.Sprintf("d%d", i+1)})
			}
			w.set(fmt.Sprintf("%s/d%d", last, referent.MaxDepth+1), secret)
			w.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "s"}, state(w, "a", "1"))
		},
		referent.TooMany: func(w world, last string, _ int) {
			names := make([]any, referent.MaxReferences+1)
			for i := range names {
				names[i] = map[string]any{"name": fmt.Sprintf("s%d", i)}
			}
			w.set(last+"/o", map[string]any{"many": names})
		},
	}
}

// TestHoldMatrix is the whole table of reason × depth × optional: a reference that is optional excuses absence only.
func TestHoldMatrix(t *testing.T) {
	t.Parallel()
	require.Len(t, causes(), len(referent.Reasons()))
	for _, reason := range referent.Reasons() {
		for depth := range 5 {
			for _, optional := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/depth %d/optional %t", reason, depth, optional), func(t *testing.T) {
					t.Parallel()
					testHold(t, reason, depth, optional)
				})
			}
		}
	}
}

func testHold(t *testing.T, reason referent.Reason, depth int, optional bool) {
	t.Helper()
	definitions := levels(depth, optional)
	definitions[depth].Refs = append(definitions[depth].Refs, referent.EdgeDefinition{Resource: "secrets", Name: "spec.many[*].name", Optional: optional})
	w := newWorld(t, definitions...)
	w.chain(depth, map[string]any{"a": "b"})
	w.Evaluate()
	before := w.entry("l0/o")
	require.NotEmpty(t, before, "valid at first")

	last := fmt.Sprintf("l%d", depth)
	causes()[reason](w, last, depth)
	w.Evaluate()
	excused := reason == referent.Missing && optional && depth > 0
	for level := range depth + 1 {
		hold := w.Hold(key(fmt.Sprintf("l%d/o", level)))
		if excused && level < depth {
			assert.Nil(t, hold, level)
			continue
		}
		require.NotNil(t, hold, level)
		assert.Equal(t, reason, hold.Reason, level)
		trail := w.PathToCause(key(fmt.Sprintf("l%d/o", level)))
		assert.Equal(t, hold.Node, trail[len(trail)-1], "it leads to the cause")
		if reason != referent.TooDeep {
			assert.Equal(t, key(last+"/o"), hold.Node)
			assert.Len(t, trail, depth-level+1)
		}
	}
	if excused {
		assert.NotEqual(t, before, w.entry("l0/o"), "absence counts")
	}

	w.SetSource(w.resource(last), "", referent.SourceSynced)
	w.SetSource(w.resource(last), "n", referent.SourceSynced)
	w.set(last+"/o", map[string]any{"a": "b"})
	w.Evaluate()
	assert.Equal(t, before, w.entry("l0/o"), "mended, it is as before")
}

// An object may be absent only where each reference to it is optional, whatever the order.
func TestHoldByOneOfTwoReferences(t *testing.T) {
	t.Parallel()
	for _, requiredFirst := range []bool{true, false} {
		definition := levels(0, true)[0]
		definition.Refs = []referent.EdgeDefinition{
			{Resource: "secrets", Name: "spec.first.name", Optional: !requiredFirst},
			{Resource: "secrets", Name: "spec.second.name", Optional: requiredFirst},
		}
		w := newWorld(t, definition)
		w.set("l0/o", map[string]any{"first": named("s"), "second": named("s")})
		w.absent("secret/s")
		w.Evaluate()
		require.NotNil(t, w.Hold(key("l0/o")), "the first one is required: %t", requiredFirst)
		optional := map[bool]string{true: "second", false: "first"}[requiredFirst]
		w.set("l0/o", map[string]any{optional: named("s")})
		w.Evaluate()
		require.Nil(t, w.Hold(key("l0/o")), "the first one was required: %t", requiredFirst)
	}
}

func TestHoldOfAConfigObject(t *testing.T) {
	t.Parallel()
	tls := reference.Ref{Kind: reference.Secret, Name: "s"}
	for name, c := range map[string]struct {
		change   func(w world)
		optional bool
		want     referent.Reason
	}{
		"missing":               {func(w world) { w.absent("secret/s") }, false, referent.Missing},
		"optional, missing":     {func(w world) { w.absent("secret/s") }, true, ""},
		"not read":              {func(world) {}, false, referent.Unsynced},
		"optional, not read":    {func(world) {}, true, referent.Unsynced},
		"metadata only":         {func(w world) { w.SetConfig("n", tls, state(w, "b", "1")) }, false, referent.Unsynced},
		"forbidden":             {func(w world) { w.SetForbidden("n", tls, "no permissions") }, false, referent.Forbidden},
		"optional, forbidden":   {func(w world) { w.SetForbidden("n", tls, "no permissions") }, true, referent.Forbidden},
		"read":                  {func(w world) { w.config("secret/s", "1") }, false, ""},
		"deleted after a read":  {func(w world) { w.config("secret/s", "1"); w.absent("secret/s") }, false, referent.Missing},
		"cannot be read":        {func(w world) { w.SetUnreadable("n", tls, "no answer", false) }, false, referent.Unsynced},
		"forbidden, no answer":  {func(w world) { w.SetForbidden("n", tls, "no"); w.SetUnreadable("n", tls, "no answer", false) }, false, referent.Forbidden},
		"read, then no answer":  {func(w world) { w.config("secret/s", "1"); w.SetUnreadable("n", tls, "no answer", false) }, false, ""},
		"no answer for long":    {func(w world) { w.config("secret/s", "1"); w.SetUnreadable("n", tls, "no answer", true) }, true, referent.Unsynced},
		"read after forbidding": {func(w world) { w.SetForbidden("n", tls, "no"); w.config("secret/s", "1") }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, levels(1, c.optional)...)
			w.chain(1, map[string]any{"secret": named("s")})
			c.change(w)
			w.Evaluate()
			hold := w.Hold(key("l0/o"))
			if c.want == "" {
				assert.Nil(t, hold)
				return
			}
			require.NotNil(t, hold)
			assert.Equal(t, c.want, hold.Reason)
			assert.Equal(t, key("secret/s"), hold.Node)
		})
	}
}

func TestARequiredReferenceBesideAnOptionalOneHolds(t *testing.T) {
	t.Parallel()
	definition := referent.Definition{ID: "a", GVR: gvr("a"), Refs: []referent.EdgeDefinition{
		{Resource: "secrets", Name: "spec.may", Optional: true},
		{Resource: "secrets", Name: "spec.must"},
	}}
	w := newWorld(t, definition)
	w.set("a/o", map[string]any{"may": "s", "must": "s"})
	w.absent("secret/s")
	w.Evaluate()
	require.NotNil(t, w.Hold(key("a/o")))
	assert.Equal(t, 1, w.Held()[referent.Missing])
	w.set("a/o", map[string]any{"may": "s"})
	w.Evaluate()
	w.absent("secret/s")
	w.Evaluate()
	assert.Nil(t, w.Hold(key("a/o")))
	assert.Zero(t, w.Held()[referent.Missing], "absence that is allowed is no hold")
}

func TestMissingObjectThatHoldsNoOtherIsNotCounted(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.Delete(key("proxies/p"))
	w.Evaluate()
	require.Equal(t, referent.Missing, w.Hold(key("proxies/p")).Reason)
	assert.Zero(t, w.Held()[referent.Missing], "clusters refer to it, and do not depend on it")
	w.Delete(key("services/s"))
	w.Evaluate()
	assert.Equal(t, 1, w.Held()[referent.Missing], "clusters depend on it")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	condition := func(fields ...any) map[string]any {
		c := map[string]any{"type": "Ready"}
		for i := 0; i < len(fields); i += 2 {
			c[fields[i].(string)] = fields[i+1]
		}
		return map[string]any{"conditions": []any{c}}
	}
	for name, c := range map[string]struct {
		rule   referent.ReadyDefinition
		status map[string]any
		want   referent.Reason
		detail string
	}{
		"no rule":               {referent.ReadyDefinition{}, nil, "", ""},
		"observed":              {referent.ReadyDefinition{ObservedGeneration: "status.seen"}, map[string]any{"seen": int64(3)}, "", ""},
		"observed as a float":   {referent.ReadyDefinition{ObservedGeneration: "status.seen"}, map[string]any{"seen": 3.0}, "", ""},
		"observed before":       {referent.ReadyDefinition{ObservedGeneration: "status.seen"}, map[string]any{"seen": int64(2)}, referent.Stale, "status.seen is of generation 2, generation is 3"},
		"never observed":        {referent.ReadyDefinition{ObservedGeneration: "status.seen"}, map[string]any{}, referent.Stale, "there is no status.seen; generation is 3"},
		"observed as a text":    {referent.ReadyDefinition{ObservedGeneration: "status.seen"}, map[string]any{"seen": "3"}, referent.Stale, "there is no status.seen"},
		"condition":             {readyCondition("", ""), condition("status", "True"), "", ""},
		"condition false":       {readyCondition("", ""), condition("status", "False", "reason", "NoSecret"), referent.NotReady, `condition Ready is "False", want True: "NoSecret"`},
		"condition to be false": {readyCondition("False", ""), condition("status", "False"), "", ""},
		"condition missing":     {readyCondition("", ""), map[string]any{"conditions": []any{}}, referent.NotReady, "there is no condition Ready"},
		"condition after another": {
			readyCondition("", ""), map[string]any{"conditions": []any{
				map[string]any{"type": "Programmed", "status": "False"}, map[string]any{"type": "Ready", "status": "True"},
			}}, "", "",
		},
		"no conditions":            {readyCondition("", ""), map[string]any{}, referent.NotReady, "there is no status.conditions"},
		"condition of generation":  {readyCondition("", ""), condition("status", "True", "observedGeneration", int64(3)), "", ""},
		"condition behind":         {readyCondition("", ""), condition("status", "True", "observedGeneration", int64(2)), referent.Stale, "condition Ready is of generation 2"},
		"conditions of no list":    {readyCondition("", ""), map[string]any{"conditions": "x"}, referent.NotReady, "there is no condition Ready"},
		"in each of several lists": {readyCondition("", "status.parents[*].conditions"), map[string]any{"parents": []any{condition("status", "True"), condition("status", "True")}}, "", ""},
		"in one of several lists":  {readyCondition("", "status.parents[*].conditions"), map[string]any{"parents": []any{condition("status", "True"), condition("status", "False")}}, referent.NotReady, `want True`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, referent.Definition{ID: "a", GVR: gvr("a"), Ready: c.rule})
			o := object("o", nil, with(int64(3), "metadata", "generation"))
			o.Object["status"] = c.status
			w.Put(w.resource("a").Read(o))
			w.Evaluate()
			hold := w.Hold(key("a/o"))
			if c.want == "" {
				assert.Nil(t, hold)
				return
			}
			require.NotNil(t, hold)
			assert.Equal(t, c.want, hold.Reason)
			assert.Contains(t, hold.Detail, c.detail)
			assert.Contains(t, hold.String(), "a.example.io/o: "+string(c.want)+" (")
			assert.NotContains(t, hold.Detail, "deleted")
			deleted := metav1.Now()
			o.SetDeletionTimestamp(&deleted)
			w.Put(w.resource("a").Read(o))
			w.Evaluate()
			assert.Equal(t, hold.Detail+"; it is being deleted", w.Hold(key("a/o")).Detail)
		})
	}
}

func readyCondition(status, path string) referent.ReadyDefinition {
	return referent.ReadyDefinition{Conditions: []referent.ConditionDefinition{{Type: "Ready", Status: status, Path: path}}}
}

func TestReferrersMustBeKnown(t *testing.T) {
	t.Parallel()
	w := tangle(t)
	w.SetSource(w.resource("clusters"), "n", referent.SourceUnsynced)
	w.Delete(key("clusters/c1"))
	w.Delete(key("clusters/c2"))
	w.Evaluate()
	hold := w.Hold(key("proxies/p"))
	require.NotNil(t, hold, "there may be clusters that have not been read")
	assert.Equal(t, referent.Unsynced, hold.Reason)
	assert.Contains(t, hold.Detail, "clusters.example.io")
	w.SetSource(w.resource("clusters"), "n", referent.SourceSynced)
	w.Evaluate()
	assert.Nil(t, w.Hold(key("proxies/p")))
}

func TestOneNamespaceHoldsNoOther(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	w := tangle(t)
	before := w.entry("proxies/p")
	for i := range referent.MaxNodes + 1 {
		o := object(fmt.Sprintf("f%d", i), nil)
		o.SetNamespace("crowded")
		w.Put(w.resource("filters").Read(o))
	}
	w.SetSource(w.resource("filters"), "other", referent.SourceForbidden)
	w.Evaluate()
	assert.Equal(t, before, w.entry("proxies/p"))
	crowded := referent.Key{Group: "example.io", Resource: "filters", Namespace: "crowded", Name: "f0"}
	require.NotNil(t, w.Hold(crowded))
	assert.Equal(t, referent.TooMany, w.Hold(crowded).Reason)
	w.Delete(referent.Key{Group: "example.io", Resource: "filters", Namespace: "crowded", Name: "f7"})
	w.Evaluate()
	assert.Nil(t, w.Hold(crowded), "one less is not too many")
}

// Anyone who may create objects may refer to objects that do not exist. They count where the reference is.
func TestReferencesOfOneNamespaceHoldNoOther(t *testing.T) {
	t.Parallel()
	anywhere := []string{"*"}
	for name, refs := range map[string]referent.EdgeDefinition{
		"into a namespace":    {Resource: "shared", Name: "spec.to[*].name", Namespace: "spec.to[*].namespace", Namespaces: anywhere},
		"to cluster scope":    {Resource: "realms", Name: "spec.to[*].name"},
		"Secrets of a victim": {Resource: "secrets", Name: "spec.to[*].name", Namespace: "spec.to[*].namespace", Namespaces: anywhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t,
				referent.Definition{ID: "shared", GVR: gvr("shared")},
				referent.Definition{ID: "realms", GVR: gvr("realms"), ClusterScoped: true},
				referent.Definition{ID: "tenants", GVR: gvr("tenants"), Refs: []referent.EdgeDefinition{refs}})
			w.set("shared/victim", nil)
			w.set("realms/victim", nil)
			const each = referent.MaxReferences
			refer := func(i int) {
				to := make([]any, each)
				for j := range to {
					to[j] = map[string]any{"name": fmt.Sprintf("absent-%d-%d", i, j), "namespace": "n"}
				}
				w.set(fmt.Sprintf("tenants/t%d", i), map[string]any{"to": to}, with("tenant", "metadata", "namespace"))
			}
			for i := range referent.MaxNodes/each + 1 {
				refer(i)
			}
			w.Evaluate()
			assert.Nil(t, w.Hold(key("shared/victim")))
			assert.Nil(t, w.Hold(referent.Key{Group: "example.io", Resource: "realms", Name: "victim"}))
			tenant := referent.Key{Group: "example.io", Resource: "tenants", Namespace: "tenant", Name: "t0"}
			require.NotNil(t, w.Hold(tenant))
			assert.Equal(t, referent.TooMany, w.Hold(tenant).Reason, "it is the tenant who has too many")

			for _, name := range []string{"t1", "t2"} {
				w.Delete(referent.Key{Group: "example.io", Resource: "tenants", Namespace: "tenant", Name: name})
			}
			w.Evaluate()
			require.NotNil(t, w.Hold(tenant))
			assert.NotEqual(t, referent.TooMany, w.Hold(tenant).Reason, "references that are gone count no longer")
		})
	}
}

// Each evaluation of an object takes as long as it has references. A tenant with many objects that have many of them must not take
// the time of all.
func TestANamespaceHasABoundOfReferences(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	w := newWorld(t, loose())
	names := make([]string, referent.MaxReferences)
	for i := range names {
		names[i] = fmt.Sprintf("leaf%d", i)
	}
	const most = referent.MaxLinks / referent.MaxReferences
	for i := range most {
		w.loose(fmt.Sprintf("hub%d", i), names...)
	}
	for _, name := range names {
		w.loose(name)
	}
	w.Evaluate()
	before := w.entry("a/hub0")
	require.NotEmpty(t, before)
	w.loose("another", "leaf0")
	w.Evaluate()
	hold := w.Hold(key("a/hub0"))
	require.NotNil(t, hold)
	assert.Equal(t, referent.TooMany, hold.Reason)
	assert.Equal(t, "the namespace has more than 100000 references in its graph", hold.Detail)
	assert.NotNil(t, w.Hold(key("a/leaf0")), "all of the namespace")

	w.loose("another")
	w.Evaluate()
	assert.Equal(t, before, w.entry("a/hub0"), "one less is not too many")
}
