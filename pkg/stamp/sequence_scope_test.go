package stamp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Two installations divide the workloads by a label. To each, what the other wrote is under a key that it does not have.
func TestSequence33WorkloadChangesSides(t *testing.T) {
	t.Parallel()
	w, other := started(t), newWorld(t)
	other.lose("the other's")
	change := func() { // the sides
		w.ring, other.ring = other.ring, w.ring
		w.foreign, other.foreign = other.foreign, w.foreign
		require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, "side", "of "+fmt.Sprint(w.ring.Keys()[0].ID)) }))
	}
	change()
	w.at(t, 0, "the other installation takes it over")
	w.set(cm("a"), "B")
	w.at(t, 1, "it reloads it")
	change()
	w.at(t, 1, "and back")
	require.Nil(t, w.write(setImage("image:2")))
	w.at(t, 2, "a release is one rollout")
	w.set(cm("a"), "C")
	w.at(t, 3, "the first installation reloads it")
}

// pattern is a dialect that tracks all ConfigMaps of a world whose names begin with "many-", as a pattern does.
type pattern struct{ w *world }

func (p pattern) Parse(annotation.Source) (annotation.Intent, []annotation.Problem) {
	intent := annotation.Intent{Asked: true, Dynamic: true, Tracked: map[reference.Ref]annotation.Trigger{}}
	for ref := range p.w.configs {
		if strings.HasPrefix(ref.Name, "many-") {
			intent.Tracked[ref] = every
		}
	}
	return intent, nil
}

func TestSequence34PatternWhoseObjectsChangeInARelease(t *testing.T) {
	t.Parallel()
	const objects = 400
	for name, tc := range map[string]struct {
		modified, created, deleted bool
		release                    bool
		restarts                   int
	}{
		"modified and created":                 {modified: true, created: true, restarts: 1},
		"modified and created, then a release": {modified: true, created: true, release: true, restarts: 1},
		"created, then a release":              {created: true, release: true, restarts: 1},
		"created alone is adopted":             {created: true, restarts: 0},
		"deleted, then a release":              {deleted: true, release: true, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reader.Dialects = []annotation.Dialect{pattern{w}}
			for n := range objects {
				w.set(cm(fmt.Sprintf("many-%03d", n)), "A")
			}
			require.Nil(t, w.create(w.manifest(nil)))
			w.quiesce()
			if tc.modified {
				w.set(cm("many-007"), "B")
			}
			if tc.created {
				w.set(cm("many-new"), "A")
			}
			if tc.deleted {
				w.remove(cm("many-007"))
			}
			if tc.release {
				require.Nil(t, w.write(setImage("image:2")))
			}
			w.at(t, tc.restarts, "once")
			if last, err := lastOf(w); tc.modified && assert.NoError(t, err) {
				require.Len(t, last.Changes, 1)
				assert.Equal(t, "configmap/many-007", last.Changes[0].Ref, "the cause is named")
			}
			w.set(cm("many-100"), "B")
			w.at(t, tc.restarts+1, "a change is still seen")
			if tc.created {
				w.set(cm("many-new"), "B")
				w.at(t, tc.restarts+2, "also of the created one")
			}
		})
	}
}

// A new version of the program recognises more places of a pod spec that name an object.
func TestSequence04NewVersionTracksMore(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(*world) *Rejection{
		"nothing else":  func(*world) *Rejection { return nil },
		"a label":       func(w *world) *Rejection { return w.write(func(raw map[string]any) { annotate(raw, "x", "y") }) },
		"a PUT":         (*world).put,
		"opting in too": func(w *world) *Rejection { return w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("b"), "A")
			w.set(secret("a"), "A")
			w.reader.Dialects = []annotation.Dialect{annotation.SAP{Keys: w.keys}}
			require.Nil(t, w.create(w.manifest(w.lists("b", ""))))
			w.quiesce()
			w.reader.Dialects = append(w.reader.Dialects, more{})
			require.Nil(t, touch(w))
			w.at(t, 0, "what it tracks in addition is unknown, not created")
			w.set(secret("a"), "B")
			w.at(t, 1, "from now on it counts")
		})
	}
}

// more tracks all that the pod spec names, whatever the annotations say.
type more struct{}

func (more) Parse(src annotation.Source) (annotation.Intent, []annotation.Problem) {
	return auto{}.Parse(annotation.Source{Workload: map[string]string{autoKey: "true"}, References: src.References})
}

// While an object is not tracked, its item in the Record holds as long as the pods do.
func TestObjectTrackedAgainIsComparedWithWhatThePodsHave(t *testing.T) {
	t.Parallel()
	track := func(value string) func(*world) {
		return func(w *world) {
			require.Nil(w.t, w.write(func(raw map[string]any) { annotate(raw, autoKey, value) }))
		}
	}
	release := func(w *world) { require.Nil(w.t, w.write(setImage("image:2"))) }
	change := func(w *world) { w.set(cm("b"), "B") }
	for name, tc := range map[string]struct {
		reason   string
		between  []func(*world)
		restarts int
	}{
		"changed": {
			reason: "The pods have an older content.", between: []func(*world){change}, restarts: 1,
		},
		"not changed": {
			reason: "Nothing is due.", between: []func(*world){release}, restarts: 1,
		},
		"changed, and then a release": {
			reason: "The pods of the release have the content.", between: []func(*world){change, release}, restarts: 1,
		},
		"changed, and then a release while the state cannot be read": {
			reason: "They have it, too.", restarts: 1,
			between: []func(*world){change, func(w *world) { w.unreadable = true; release(w); w.unreadable = false }},
		},
		"changed, and then a release that another webhook changes": {
			reason: "The second pass finds the Record of the first.", restarts: 1,
			between: []func(*world){change, func(w *world) {
				w.other = func(raw map[string]any) { annotate(raw, "other", "1", "spec", "template") }
				release(w)
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			track("true")(w)
			w.at(t, 0, "adopted")
			track("")(w)
			for _, do := range tc.between {
				do(w)
			}
			track("true")(w)
			w.at(t, tc.restarts, tc.reason)
			w.set(cm("b"), "C")
			w.at(t, tc.restarts+1, "the next change counts")
		})
	}
}

// A workload is deleted, its pods are left, and it is created again from its manifest. It gets its template back where that was stamped with
// the present content; where it was adopted, under a label that excludes it.
func TestCreatedAgainBesideItsPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		adopted, label, replaced bool
	}{
		"stamped":               {},
		"stamped, with a label": {label: true, replaced: true},
		"adopted":               {adopted: true, replaced: true},
		"adopted, with a label": {adopted: true, label: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("a"), "A")
			manifest := w.manifest(w.lists("a", ""))
			w.away = tc.adopted
			require.Nil(t, w.create(manifest))
			w.away = false
			w.quiesce()
			before := w.object()
			if tc.label {
				w.ignore(manifest)
			}
			require.Nil(t, w.create(manifest))
			require.Nil(t, w.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
			w.quiesce()
			assert.Equal(t, tc.replaced, !before.SameTemplate(w.object()))
			w.set(cm("a"), "B")
			restarts := w.restarts
			w.at(t, restarts+1, "a change is seen")
		})
	}
}
