package stamp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	operations "gomodules.xyz/jsonpatch/v2"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	all := Managed{Hash: "h", Restart: "r", Dummy: "d", Record: "b", LastReload: "l"}
	for name, c := range map[string]struct {
		raw  string
		want Managed
		ops  []operations.Operation
	}{
		"nothing differs": {
			raw:  `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-record":"b","x":"y"}},"spec":{"template":{}}}`,
			want: Managed{Record: "b"},
		},
		"annotations are missing: made once, the slash of the key is escaped": {
			raw:  `{"metadata":{},"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`,
			want: Managed{Record: "b", LastReload: "l", Hash: "h"},
			ops: []operations.Operation{
				{Operation: "add", Path: "/spec/template/metadata/annotations/pod-reloader.cs.sap.com~1config-hash", Value: "h"},
				{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{}},
				{Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-record", Value: "b"},
				{Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1last-reload", Value: "l"},
			},
		},
		"annotations are null, metadata of the template is missing": {
			raw:  `{"metadata":{"annotations":null},"spec":{"template":{}}}`,
			want: Managed{Hash: "h", Dummy: "d"},
			ops: []operations.Operation{
				{Operation: "add", Path: "/spec/template/metadata", Value: map[string]any{}},
				{Operation: "add", Path: "/spec/template/metadata/annotations", Value: map[string]any{}},
				{Operation: "add", Path: "/spec/template/metadata/annotations/pod-reloader.cs.sap.com~1config-hash", Value: "h"},
				{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{}},
				{Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-hash", Value: "d"},
			},
		},
		"annotations are empty: no parent": {
			raw:  `{"metadata":{"annotations":{}},"spec":{"template":{}}}`,
			want: Managed{Record: "b"},
			ops:  []operations.Operation{{Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-record", Value: "b"}},
		},
		"purge": {
			raw: `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"d"}},"spec":{"template":{}}}`,
			ops: []operations.Operation{{Operation: "remove", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-hash"}},
		},
		"an annotation that is no text is replaced": {
			raw:  `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-record":5}},"spec":{"template":{}}}`,
			want: Managed{Record: "b"},
			ops:  []operations.Operation{{Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-record", Value: "b"}},
		},
		"no template, no place": {raw: `{"metadata":{"annotations":"x"},"spec":{}}`, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := decode(t, []byte(c.raw))
			o := workload.Object{Kind: workload.Deployment(), Raw: raw}
			ops := Reader{Keys: keys}.Operations(o, c.want)
			assert.Equal(t, c.ops, ops)
			patch(t, raw, ops)
		})
	}
}

// Another annotation is added behind those of ours, and what both need is made once.
func TestOperationsWithAnotherAnnotation(t *testing.T) {
	t.Parallel()
	keys, other := annotation.DefaultKeys(), Annotation{Key: "example.org/since", Value: "x"}
	add := operations.Operation{Operation: "add", Path: "/metadata/annotations/example.org~1since", Value: "x"}
	made := operations.Operation{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{}}
	for name, c := range map[string]struct {
		raw  string
		want Managed
		ops  []operations.Operation
	}{
		"nothing else differs":      {raw: `{"metadata":{"annotations":{"x":"y"}},"spec":{"template":{}}}`, ops: []operations.Operation{add}},
		"no pod template":           {raw: `{"metadata":{"annotations":{"x":"y"}},"spec":{}}`, ops: []operations.Operation{add}},
		"annotations are missing":   {raw: `{"metadata":{},"spec":{"template":{}}}`, ops: []operations.Operation{made, add}},
		"annotations are null":      {raw: `{"metadata":{"annotations":null},"spec":{"template":{}}}`, ops: []operations.Operation{made, add}},
		"annotations are no object": {raw: `{"metadata":{"annotations":"x"},"spec":{"template":{}}}`},
		"one of ours is missing as well": {
			raw: `{"metadata":{},"spec":{"template":{}}}`, want: Managed{Record: "b"},
			ops: []operations.Operation{
				made, {Operation: "add", Path: "/metadata/annotations/pod-reloader.cs.sap.com~1config-record", Value: "b"}, add,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := decode(t, []byte(c.raw))
			ops := Reader{Keys: keys}.Operations(workload.Object{Kind: workload.Deployment(), Raw: raw}, c.want, other)
			assert.Equal(t, c.ops, ops)
			patch(t, raw, ops)
		})
	}
}

// The API server refuses a write whose annotations are too large, no matter which writer has added them.
func TestAnotherAnnotationFitsBesideOurs(t *testing.T) {
	t.Parallel()
	keys, other := annotation.DefaultKeys(), Annotation{Key: "example.org/since", Value: "x"}
	budget := maxOnWorkload - len("note") - len(keys.ConfigRecord) - len("recorded") - len(other.Key) - len(other.Value)
	for excess, fits := range map[int]bool{-1: true, 0: true, 1: false} {
		raw := map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"note": strings.Repeat("x", budget+excess)}},
			"spec":     map[string]any{"template": map[string]any{}},
		}
		view, _ := Reader{Keys: keys}.Read(workload.Object{Kind: workload.Deployment(), Raw: raw})
		assert.Equal(t, fits, view.Fits(Managed{Record: "recorded", Hash: "of the template"}, other), excess)
	}
}

func TestOperationsOfOtherPaths(t *testing.T) {
	t.Parallel()
	kind, err := workload.ParseKind("example.com/v1/App=spec.some-pod.template")
	require.NoError(t, err)
	raw := decode(t, []byte(`{"metadata":{},"spec":{"some-pod":{"template":{"unknown":1}}}}`))
	patched := patch(t, raw, Reader{Keys: annotation.DefaultKeys()}.Operations(workload.Object{Kind: kind, Raw: raw}, Managed{Restart: "r"}))
	assert.Equal(t, Managed{Restart: "r"}, managedBy(workload.Object{Kind: kind, Raw: patched}, annotation.DefaultKeys()))
}

func TestPointer(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "/a~1b/c~0d/~01", Pointer("a/b", "c~d", "~1"))
}

func TestGuard(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	base := `{"metadata":{"uid":"u","generation":3,"labels":{"tier":"web"},"annotations":{"pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"spec":{}}}}`
	for name, c := range map[string]struct {
		now    string
		passes bool
	}{
		"the same":            {base, true},
		"something else":      {`{"metadata":{"uid":"u","generation":3,"labels":{"tier":"web","x":"y"},"annotations":{"x":"y","pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"spec":{"x":1}}}}`, true},
		"excluded since":      {strings.Replace(base, `"tier":"web"`, `"pod-reloader.cs.sap.com/ignored":"true"`, 1), false},
		"another generation":  {`{"metadata":{"uid":"u","generation":4,"annotations":{"pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"spec":{}}}}`, false},
		"another object":      {`{"metadata":{"uid":"v","generation":3,"annotations":{"pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"spec":{}}}}`, false},
		"another annotation":  {`{"metadata":{"uid":"u","generation":3,"annotations":{"pod-reloader.cs.sap.com/config-record":"c"}},"spec":{"template":{"spec":{}}}}`, false},
		"annotation is gone":  {`{"metadata":{"uid":"u","generation":3,"annotations":{}},"spec":{"template":{"spec":{}}}}`, false},
		"a new annotation":    {`{"metadata":{"uid":"u","generation":3,"annotations":{"pod-reloader.cs.sap.com/last-reload":"l","pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"spec":{}}}}`, false},
		"new on the template": {`{"metadata":{"uid":"u","generation":3,"annotations":{"pod-reloader.cs.sap.com/config-record":"b"}},"spec":{"template":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"h"}},"spec":{}}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ops := Reader{Keys: keys}.Guard(workload.Object{Kind: workload.Deployment(), Raw: decode(t, []byte(base))})
			_, err := tryPatch(decode(t, []byte(c.now)), ops)
			assert.Equal(t, c.passes, err == nil, "%v", err)
		})
	}
}

// FuzzOperations makes sure that whatever a workload looks like, a request is decided without a panic, and the patch
// applies and touches our annotations only.
func FuzzOperations(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"annotations":{"pod-reloader.cs.sap.com/configmaps":"a"}},"spec":{"template":{"spec":{}}}}`,
		`{"metadata":null,"spec":{"template":{"metadata":{"annotations":[]}}}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":1,"auto.example.com/reload":"true"}}}}}`,
		`{}`,
	} {
		f.Add([]byte(seed), []byte(`{}`), "h", "")
		f.Add([]byte(`{"metadata":{"generation":2}}`), []byte(seed), "", "v1:-::")
	}
	f.Fuzz(func(t *testing.T, old, current []byte, hash, rec string) {
		var before, after map[string]any
		if json.Unmarshal(old, &before) != nil || json.Unmarshal(current, &after) != nil || after == nil {
			return
		}
		w := newWorld(t)
		w.set(cm("a"), "A")
		o := workload.Object{Kind: w.kind, Raw: after}
		stays(t, w, o, Managed{Hash: hash, Record: rec})
		stored := workload.Object{Kind: w.kind, Raw: before}
		for _, previous := range []*workload.Object{nil, &stored} {
			req, _ := w.reader.NewWrite(previous, o)
			plan := Choose(req)
			if result := plan.Apply(req, w.inputs(plan.Reads)); result.Reject == nil {
				stays(t, w, o, result.Managed)
			}
		}
	})
}

// stays asserts that a patch touches our annotations only.
func stays(t *testing.T, w *world, o workload.Object, want Managed) {
	t.Helper()
	patched := patch(t, o.Raw, w.reader.Operations(o, want))
	before, after := bare(w, o.Raw), bare(w, patched)
	assert.Equal(t, before, after)
	_, err := tryPatch(o.Raw, w.reader.Guard(o))
	require.NoError(t, err)
}

// bare returns an object without our annotations and the empty maps that they may have needed.
func bare(w *world, raw map[string]any) map[string]any {
	raw = w.stripped(raw)
	prune := func(parent map[string]any, field string) {
		if m, ok := parent[field].(map[string]any); ok && len(m) == 0 || parent[field] == nil {
			delete(parent, field)
		}
	}
	if m, ok := raw["metadata"].(map[string]any); ok {
		prune(m, "annotations")
	}
	prune(raw, "metadata")
	spec, _ := raw["spec"].(map[string]any)
	if template, ok := spec["template"].(map[string]any); ok {
		if m, ok := template["metadata"].(map[string]any); ok {
			prune(m, "annotations")
		}
		prune(template, "metadata")
	}
	return raw
}

// FuzzReadView makes sure that no text in a managed annotation makes reading panic, and that what is read fits.
func FuzzReadView(f *testing.F) {
	f.Add("a,b", "h", "v1:h:1c9e04ab:configmap/a=9a0c4f1122334455@1,secret/a=-", `{"time":"2026-01-01T00:00:00Z","hash":"h","cause":"x"}`)
	f.Add(",", "", "v1:-:00000000:*AAAAAAAAAAAAAAAAAAAAAAAA", "")
	f.Fuzz(func(t *testing.T, list, hash, rec, last string) {
		w := newWorld(t)
		raw := w.manifest(w.lists(list, list))
		for key, value := range map[Key]string{Hash: hash, Record: rec, LastReload: last} {
			w.setManaged(raw, key, value)
		}
		old := workload.Object{Kind: w.kind, Raw: raw}
		view, _ := w.reader.Read(old)
		view.Known()
		view.Managed.LastReload(w.inputs(nil).Now)
		touched := clone(t, raw)
		setImage("image:2")(touched)
		for _, next := range []map[string]any{raw, touched, w.stripped(raw)} {
			req, _ := w.reader.NewWrite(&old, workload.Object{Kind: w.kind, Raw: next})
			plan := Choose(req)
			plan.Apply(req, w.inputs(plan.Reads))
		}
	})
}

// realistic returns a Deployment of some 8 KB, stamped.
func realistic(b *testing.B) *world {
	b.Helper()
	w := newWorld(b)
	text, err := os.ReadFile(filepath.Join("testdata", "deployment.json"))
	require.NoError(b, err)
	w.set(cm("a"), "A")
	require.Nil(b, w.create(decode(b, text)))
	return w
}

func BenchmarkChooseNothing(b *testing.B) {
	w := realistic(b)
	old := w.object()
	raw := clone(b, w.stored)
	raw["spec"].(map[string]any)["replicas"] = 9.0
	current := workload.Object{Kind: w.kind, Raw: raw}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := w.reader.NewWrite(&old, current)
		if plan := Choose(req); plan.Rule != RuleNothing {
			b.Fatal(plan.Rule)
		}
	}
}

func BenchmarkSameTemplate(b *testing.B) {
	w := realistic(b)
	old, current := w.object(), workload.Object{Kind: w.kind, Raw: clone(b, w.stored)}
	b.ReportAllocs()
	for b.Loop() {
		if !old.SameTemplate(current, w.keys.ConfigHash, w.keys.ConfigRestart) {
			b.Fatal("the same template")
		}
	}
}
