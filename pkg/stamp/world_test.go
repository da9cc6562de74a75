package stamp

import (
	"fmt"
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
	// held are the objects whose state cannot be trusted, as that of a custom resource that is not ready.
	held map[reference.Ref]bool

	stored map[string]any
	// restarts counts changes of the pod template.
	restarts int

	// away: no webhook answers. unreadable: its reads fail. revision: --hash=revision.
	away, unreadable, revision bool
	// other is a second mutating webhook, after whose change ours is called again.
	other func(raw map[string]any)
	// webhooks are those of all installations, in the order in which they are called; nil is that of reader alone.
	webhooks []Reader
	// reloadMissing: --missing-required=reload.
	reloadMissing bool
	// notifyOnly is --webhook-url.
	notifyOnly bool
	// foreign are the ids of keys that the loop has adopted once.
	foreign map[digest.KeyID]bool
	// result is that of the last pass of the webhook.
	result Result
}

func cm(name string) reference.Ref     { return reference.Ref{Kind: reference.ConfigMap, Name: name} }
func secret(name string) reference.Ref { return reference.Ref{Kind: reference.Secret, Name: name} }

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, kind: workload.Deployment(), keys: annotation.DefaultKeys(), secrets: map[string][]byte{},
		configs: map[reference.Ref]configuration{}, rv: 100, foreign: map[digest.KeyID]bool{},
	}
	w.reader = Reader{Keys: w.keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: w.keys}, auto{}}, Strategy: strategyOf(t.Name())}
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

// set writes the content of a config object, or only touches it where it is equal. A ConfigMap with the content "" has no key.
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
	if w.held[ref] {
		return digest.State{Hold: &digest.Hold{Reason: "it is not ready"}}
	}
	c, ok := w.configs[ref]
	if !ok {
		return digest.State{Absent: true}
	}
	meta := metav1.ObjectMeta{Namespace: "test", Name: ref.Name}
	data := map[string]string{"k": c.data}
	if c.data == "" {
		data = nil
	}
	content := digest.OfConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: data})
	if ref.Kind == reference.Secret {
		content = digest.OfSecret(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte(c.data)}})
	}
	state := digest.StateOf(content, c.uid, c.rv, w.ring)
	if ref.Kind == reference.ConfigMap {
		state.SHA1 = content.SHA1()
	}
	return state
}

func (w *world) states(refs []reference.Ref) map[reference.Ref]digest.State {
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		states[ref] = w.state(ref)
	}
	return states
}

func (w *world) object() workload.Object { return workload.Object{Kind: w.kind, Raw: w.stored} }
func (w *world) managed() Managed        { return w.managedOf(w.stored) }
func (w *world) view() View              { v, _ := w.reader.Read(w.object()); return v }
func (w *world) inputs(refs []reference.Ref) Inputs {
	inputs := Inputs{
		Settings: Settings{Revision: w.revision, ReloadMissingRequired: w.reloadMissing, NotifyOnly: w.notifyOnly},
		States:   w.states(refs), Ring: w.ring, RingRead: true, Namespace: "test",
		Now: time.Date(2026, 1, 1, 0, 0, w.rv, 0, time.UTC),
	}
	if w.unreadable && len(refs) > 0 {
		inputs.States, inputs.Err = nil, fmt.Errorf("the API server is down")
	}
	return inputs
}

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
	rec, err := policy.NewRecord(policy.Input{Intent: w.view().Intent, Current: w.states(w.view().Intent.Refs()), Ring: w.ring}, w.managed()[Hash], adopted)
	require.NoError(w.t, err)
	return rec
}

// lastOf reads the explanation of the last reload.
func lastOf(w *world) (record.LastReload, error) {
	return record.ParseLastReload(w.managed()[LastReload])
}
