package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func TestSequence16LabelAndUndo(t *testing.T) {
	t.Parallel()
	w := started(t)
	v1 := clone(t, w.stored)
	require.Nil(t, w.write(setImage("image:2")))
	w.set(cm("a"), "A") // a label gives it another resourceVersion
	w.quiesce()
	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, v1) }))
	assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first ReplicaSet survive")
	w.at(t, 2, "the release and its undo")
}

func templateOf(raw map[string]any) any { return raw["spec"].(map[string]any)["template"] }

func TestSequence17IgnoredByPut(t *testing.T) {
	t.Parallel()
	w := started(t)
	for range 2 {
		raw := w.stripped(w.stored)
		w.ignore(raw)
		require.Nil(t, w.store(raw))
	}
	w.at(t, 0, "set, and set again")
	w.set(cm("a"), "B")
	require.Nil(t, w.write(setImage("image:2")))
	raw := w.stripped(w.stored)
	delete(raw["metadata"].(map[string]any), "labels")
	require.Nil(t, w.store(raw))
	w.at(t, 1, "the release only: its pods started with the change")
}

func TestIgnoredChangeIsReloadedWhenTheLabelGoes(t *testing.T) {
	t.Parallel()
	w := started(t)
	require.Nil(t, w.write(func(raw map[string]any) { w.ignore(raw) }))
	w.set(cm("a"), "B")
	w.at(t, 0, "ignored")
	require.Nil(t, w.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
	w.at(t, 1, "the pods have an older configuration")
}

func TestSequence18ClientsDummyComesBackByUndo(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.away = true
	w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "0123") })
	copied := clone(t, w.stored)
	w.away = false
	w.write(setImage("image:2"))
	assert.NotContains(t, w.managed(), Dummy)
	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, copied) }))
	assert.NotContains(t, w.managed(), Dummy)
	w.at(t, 2, "the release and its undo")
}

func TestSequence19LostKeyAndOptedOut(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.lose("3")
	w.at(t, 0, "adopted again")
	w.write(func(raw map[string]any) { w.ignore(raw) })
	w.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") })
	w.at(t, 0, "excluded and included again")
	w.set(cm("a"), "B")
	w.at(t, 1, "a change is seen")
}

func TestSequence20HoldSurvivesALaterWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	w.create(w.manifest(w.lists("b", "")))
	field := func(raw map[string]any) { annotate(raw, "injected", "1", "spec", "template") }
	w.other = field
	w.write(setImage("image:2"))
	w.restarts = 0
	w.remove(cm("b"))
	w.at(t, 0, "held")
	require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, "injected", "", "spec", "template") }))
	w.at(t, 0, "a no-op PUT: the other webhook adds its field again")
}

func TestSequence27RecordNeverMakesAWriteTooLarge(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b,c") })
	w.at(t, 1, "edited lists, so that there is a last reload")
	raw := w.stripped(w.stored)
	free := len(w.managed()[LastReload]) + 120 // too little for four items, in the compact form, too
	annotate(raw, "big", strings.Repeat("x", w.view().WorkloadBudget-len("big")-free))
	require.Nil(t, w.store(raw))
	onWorkload, _ := w.object().AnnotationSizes()
	assert.LessOrEqual(t, onWorkload, maxOnWorkload)
	assert.NotContains(t, w.managed(), Record)
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "too large")
	w.at(t, 1, "the hash is still there")
	w.set(cm("a"), "B")
	w.at(t, 2, "a change is still seen")
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, "*", last.Changes[0].Ref, "its cause has no name")
}

func TestSequence28MissingAtCreateDeletedAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.manifest(w.lists("b", "")))
	v1 := clone(t, w.stored)
	w.set(cm("b"), "A")
	w.at(t, 0, "adopted")
	v1 = w.annotated(v1)
	w.remove(cm("b"))
	w.at(t, 0, "held")
	require.Nil(t, w.write(setImage("image:2")))
	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, v1) }))
	w.at(t, 2, "the release and its undo: held")
	w.set(cm("b"), "B")
	w.at(t, 3, "back with another content")
}

// annotated returns an earlier version with the present annotations, as the Deployment controller copies them.
func (w *world) annotated(earlier map[string]any) map[string]any {
	raw := clone(w.t, earlier)
	raw["metadata"].(map[string]any)["annotations"] = clone(w.t, w.stored)["metadata"].(map[string]any)["annotations"]
	return raw
}

func TestSequence30RecordStripped(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bool{"nothing changed": false, "configuration changed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.away = true
			w.write(func(raw map[string]any) { w.setManaged(raw, Record, "") })
			w.away = false
			if !change {
				w.at(t, 0, "rebuilt")
				assert.Contains(t, w.managed()[Record], "configmap/a=")
				return
			}
			w.set(cm("a"), "B")
			w.at(t, 1, "the hash still says that something changed")
		})
	}
}

func TestSequence32ConstantChangeBetweenPasses(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.other = func(raw map[string]any) {
		annotate(raw, "other", "1", "spec", "template")
		w.set(cm("a"), "C")
	}
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, w.bound(digest.AnyCurrent)) }))
	assert.Equal(t, w.hash(), w.managed()[Hash], "the second pass stamps what it reads")
	w.other = nil
	w.at(t, 1, "once")
}

func TestSequence35RecordOfTheNextVersion(t *testing.T) {
	t.Parallel()
	w := started(t)
	before := w.managed()
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:by hand") }))
	assert.Equal(t, before, w.managed(), "a write that brings it may be a hand edit")
	w.away = true
	w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:next") })
	w.away = false
	w.set(cm("a"), "B")
	w.at(t, 0, "nor acted upon")
	require.Nil(t, w.put())
	assert.Equal(t, "v2:next", w.managed()[Record])
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, "v2:next", w.managed()[Record])
	w.at(t, 1, "the release")
}
