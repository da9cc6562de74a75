package stamp

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// configuration is a config object of the world.
type configuration struct {
	uid, rv, data string
}

// world is a cluster with one workload: it plays the API server, the webhook and the loop over pure functions.
type world struct {
	t       testing.TB
	kind    workload.Kind
	keys    annotation.Keys
	reader  Reader
	ring    digest.Ring
	secrets map[string][]byte

	configs map[reference.Ref]configuration
	rv      int

	stored map[string]any
	// restarts counts changes of the pod template.
	restarts int

	// away: no webhook answers. unreadable: its reads fail. revision: --hash=revision.
	away, unreadable, revision bool
	// other is a second mutating webhook, after whose change ours is called again.
	other func(raw map[string]any)
	// reloadMissing: --missing-required=reload.
	reloadMissing bool
	// foreign are the ids of keys that the loop has adopted once.
	foreign map[digest.KeyID]bool
	// result and live are of the last pass of the webhook.
	result Result
}

// autoKey is the annotation of the test's other dialect: "true" tracks what the pod spec names, for modifications only.
const autoKey = "auto.example.com/reload"

type auto struct{}

func (auto) Parse(src annotation.Source) (annotation.Intent, []annotation.Problem) {
	if src.Workload[autoKey] != "true" {
		return annotation.Intent{}, nil
	}
	intent := annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{}}
	for _, r := range src.References {
		intent.Tracked[r.Ref] = annotation.Trigger{}
	}
	return intent, nil
}

func cm(name string) reference.Ref     { return reference.Ref{Kind: reference.ConfigMap, Name: name} }
func secret(name string) reference.Ref { return reference.Ref{Kind: reference.Secret, Name: name} }

func testKeys(t testing.TB) annotation.Keys {
	t.Helper()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	return keys
}

func deployment() workload.Kind {
	kind, _ := workload.NewKinds(workload.Builtin()...).Get(workload.Builtin()[1].GroupVersionKind)
	return kind
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, kind: deployment(), keys: testKeys(t), secrets: map[string][]byte{},
		configs: map[reference.Ref]configuration{}, rv: 100, foreign: map[digest.KeyID]bool{},
	}
	w.reader = Reader{Keys: w.keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: w.keys}, auto{}}}
	w.rotate("1")
	return w
}

// rotate adds a digest key, which signs from then on.
func (w *world) rotate(name string) {
	w.secrets[name] = []byte(fmt.Sprintf("%-32s", "key "+name))
	ring, err := digest.NewRing(w.secrets)
	require.NoError(w.t, err)
	w.ring = ring
}

// lose replaces all digest keys by one.
func (w *world) lose(name string) {
	w.secrets = map[string][]byte{}
	w.rotate(name)
}

// set writes the content of a config object, or only touches it where it is equal.
func (w *world) set(ref reference.Ref, data string) {
	w.rv++
	c, ok := w.configs[ref]
	if !ok {
		c.uid = "uid-" + strconv.Itoa(w.rv)
	}
	c.rv, c.data = strconv.Itoa(w.rv), data
	w.configs[ref] = c
}

func (w *world) remove(ref reference.Ref) { delete(w.configs, ref) }

// state reads a config object.
func (w *world) state(ref reference.Ref) digest.State {
	c, ok := w.configs[ref]
	if !ok {
		return digest.State{Absent: true}
	}
	meta := metav1.ObjectMeta{Namespace: "test", Name: ref.Name}
	content := digest.OfConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": c.data}})
	if ref.Kind == reference.Secret {
		content = digest.OfSecret(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte(c.data)}})
	}
	return digest.StateOf(content, c.uid, c.rv, w.ring)
}

func (w *world) states(refs []reference.Ref) map[reference.Ref]digest.State {
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		states[ref] = w.state(ref)
	}
	return states
}

func (w *world) object() workload.Object { return workload.Object{Kind: w.kind, Raw: w.stored} }
func (w *world) marks() Marks            { return marksOf(w.object(), w.keys) }
func (w *world) view() View              { v, _ := w.reader.Read(w.object()); return v }
func (w *world) live(refs []reference.Ref) Live {
	live := Live{
		States: w.states(refs), Ring: w.ring, Namespace: "test", Revision: w.revision, ReloadMissingRequired: w.reloadMissing,
		Now: time.Date(2026, 1, 1, 0, 0, w.rv, 0, time.UTC),
	}
	if w.unreadable && len(refs) > 0 {
		live.States, live.Err = nil, fmt.Errorf("the API server is down")
	}
	return live
}

// manifest is what a user applies: a Deployment that names configmap/b (required) and secret/a (optional).
func (w *world) manifest(annotations map[string]string) map[string]any {
	onWorkload := map[string]any{}
	for k, v := range annotations {
		onWorkload[k] = v
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "app", "namespace": "test", "annotations": onWorkload},
		"spec": map[string]any{
			"replicas":     float64(1),
			"unknownField": map[string]any{"kept": true},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "app"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "c", "image": "image:1",
					"envFrom": []any{
						map[string]any{"configMapRef": map[string]any{"name": "b"}},
						map[string]any{"secretRef": map[string]any{"name": "a", "optional": true}},
					},
				}}},
			},
		},
	}
}

// lists returns the annotations of SAP's dialect.
func (w *world) lists(configMaps, secrets string) map[string]string {
	return map[string]string{w.keys.ConfigMaps: configMaps, w.keys.Secrets: secrets}
}

// create stores a new workload.
func (w *world) create(raw map[string]any) *Rejection {
	w.stored = nil
	return w.store(raw)
}

// write updates the workload.
func (w *world) write(change func(raw map[string]any)) *Rejection {
	raw := clone(w.t, w.stored)
	change(raw)
	return w.store(raw)
}

// store is the API server: admission, then what is stored.
func (w *world) store(raw map[string]any) *Rejection {
	raw = clone(w.t, raw)
	metadata := raw["metadata"].(map[string]any)
	for _, field := range []string{"uid", "generation"} {
		delete(metadata, field)
		if w.stored != nil {
			metadata[field] = w.stored["metadata"].(map[string]any)[field]
		}
	}
	if !w.away {
		raw, rejection := w.admit(raw)
		if rejection != nil {
			return rejection
		}
		if w.other != nil {
			touched := clone(w.t, raw)
			w.other(touched)
			if !reflect.DeepEqual(raw, touched) {
				if raw, rejection = w.admit(touched); rejection != nil {
					return rejection
				}
			}
		}
		w.commit(raw)
		return nil
	}
	w.commit(raw)
	return nil
}

// commit stores a version.
func (w *world) commit(raw map[string]any) {
	old := w.stored
	metadata := raw["metadata"].(map[string]any)
	if old == nil {
		metadata["uid"], metadata["generation"] = "uid", float64(1)
	} else {
		annotated := w.kind.Kind == "Deployment" && !reflect.DeepEqual(annotationsOf(old), annotationsOf(raw))
		if annotated || !reflect.DeepEqual(old["spec"], raw["spec"]) {
			metadata["generation"] = old["metadata"].(map[string]any)["generation"].(float64) + 1
		}
		before := workload.Object{Kind: w.kind, Raw: old}
		if !before.SameTemplate(workload.Object{Kind: w.kind, Raw: raw}) {
			w.restarts++
		}
	}
	w.stored = raw
}

// annotationsOf returns the annotations of a workload. Writing them raises a Deployment's generation, but that of no other
// kind.
func annotationsOf(raw map[string]any) any {
	annotations, _ := raw["metadata"].(map[string]any)["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// admit is one pass of our webhook.
func (w *world) admit(raw map[string]any) (map[string]any, *Rejection) {
	current := workload.Object{Kind: w.kind, Raw: raw}
	var old *workload.Object
	if w.stored != nil {
		old = &workload.Object{Kind: w.kind, Raw: w.stored}
	}
	before := clone(w.t, raw)
	req, _ := w.reader.NewRequest(old, current)
	plan := Choose(req)
	w.result = plan.Apply(req, w.live(plan.Reads))
	require.Equal(w.t, before, raw, "deciding must not change the object")
	if w.result.Reject != nil {
		return nil, w.result.Reject
	}
	ops := Operations(current, w.keys, w.result.Marks)
	patched := patch(w.t, raw, ops)
	require.Equal(w.t, w.stripped(before), w.stripped(patched), "only our annotations may be touched")
	require.Equal(w.t, w.result.Marks, marksOf(workload.Object{Kind: w.kind, Raw: patched}, w.keys), "the patch must bring the marks")
	return patched, nil
}

// stripped returns an object without our annotations and without empty maps of annotations.
func (w *world) stripped(raw map[string]any) map[string]any {
	raw = clone(w.t, raw)
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		parent := raw
		for _, field := range path {
			parent, _ = parent[field].(map[string]any)
		}
		annotations, ok := parent["annotations"].(map[string]any)
		if !ok {
			continue
		}
		for _, key := range []string{w.keys.ConfigHash, w.keys.ConfigRestart, w.keys.ConfigRecord, w.keys.LastReload} {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			delete(parent, "annotations")
		}
	}
	return raw
}

// mark sets or removes a mark.
func (w *world) mark(raw map[string]any, slot Slot, value string) {
	for _, s := range slots {
		if s.slot != slot {
			continue
		}
		if s.template {
			annotate(raw, s.key(w.keys), value, "spec", "template")
		} else {
			annotate(raw, s.key(w.keys), value)
		}
	}
}

// put replaces the object by a manifest that knows nothing of our annotations.
func (w *world) put() *Rejection { return w.store(w.stripped(w.stored)) }

// hash returns the content digest of what is tracked.
func (w *world) hash() string { return w.hashOf(w.view()) }

func (w *world) hashOf(view View) string {
	newest, _ := w.ring.Newest()
	hash, err := digest.Hash(newest.ID, w.states(view.Intent.Refs()))
	require.NoError(w.t, err)
	return hash
}

// liveRecord returns the Record of the template with the live state.
func (w *world) liveRecord(adopted bool) record.Record {
	rec, err := policy.Fresh(policy.Input{Intent: w.view().Intent, Current: w.states(w.view().Intent.Refs()), Ring: w.ring}, w.marks()[Hash], adopted)
	require.NoError(w.t, err)
	return rec
}

// every is the trigger of SAP's dialect.
var every = annotation.Trigger{OnCreate: true, OnDelete: true}

// step is one reconciliation of the loop. It tells whether there was anything to do.
func (w *world) step() bool {
	view := w.view()
	if view.Excluded || !view.Intent.Asked {
		return false
	}
	in := policy.Input{
		Namespace: "test", Intent: view.Intent, Required: view.Required, Known: view.Marks.Known(), Ring: w.ring,
		Current: w.states(view.Intent.Refs()), ReloadMissingRequired: w.reloadMissing,
	}
	for ref, state := range in.Current {
		state.Entries = nil
		in.Current[ref] = state
	}
	maps.Copy(in.Current, w.states(policy.Assess(in).Reads))
	a := policy.Assess(in)
	switch {
	case a.Verdict.Action == policy.Reload:
		w.poke()
		return true
	case a.Verdict.Action == policy.Hold, w.foreign[a.Verdict.Foreign]:
		return false
	case len(a.Verdict.Adopt) > 0:
		if a.Verdict.Foreign != "" {
			w.foreign[a.Verdict.Foreign] = true
		}
		rec, err := a.Adopt(in, view.Marks[Hash])
		require.NoError(w.t, err)
		text, fits := rec.Text(view.RecordRoom())
		if fits {
			w.write(func(raw map[string]any) { w.mark(raw, Record, text) })
		}
		return fits
	}
	return false
}

// poke writes the dummy, and what the webhook would have written where none answers.
func (w *world) poke() {
	dummy := w.hash() + "@" + strconv.FormatInt(w.object().Generation(), 10)
	rejection := w.write(func(raw map[string]any) { w.mark(raw, Dummy, dummy) })
	require.Nil(w.t, rejection)
	if _, stored := w.marks()[Dummy]; !stored {
		return
	}
	dummy = w.hash() + "@" + strconv.FormatInt(w.object().Generation(), 10) // storing it has raised the generation
	before, after := w.view(), w.view()
	before.Marks = before.Marks.Without(Dummy)
	after.Marks = maps.Clone(before.Marks)
	after.Marks[Dummy] = dummy
	req := Request{Old: before, New: after}
	result := Choose(req).Apply(req, w.live(after.Intent.Refs()))
	ops := append(Guard(w.object(), w.keys), Operations(w.object(), w.keys, result.Marks)...)
	w.commit(patch(w.t, w.stored, ops))
}

// quiesce runs the loop until it has nothing to do.
func (w *world) quiesce() {
	w.t.Helper()
	for range 6 {
		if !w.step() {
			return
		}
	}
	require.Fail(w.t, "the loop does not come to rest", "rule %s, marks: %v, configs %v, warnings %v, ring %v", w.result.Rule, w.marks(), w.configs, w.result.Warnings, w.ring)
}

// lastOf reads the explanation of the last reload.
func lastOf(w *world) (record.LastReload, error) {
	return record.ParseLastReload(w.marks()[LastReload])
}
