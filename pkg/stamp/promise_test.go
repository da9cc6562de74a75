package stamp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyContentRestarts(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "A")
	w.at(t, 0, "a label edit gives a new resourceVersion only")
	w.remove(cm("a"))
	w.set(cm("a"), "A")
	w.at(t, 0, "deleted and created again with equal content")
	w.set(cm("a"), "B")
	w.at(t, 1, "a change")
	w.set(cm("a"), "C")
	w.set(secret("a"), "C")
	w.at(t, 2, "two changes at once")
	w.set(cm("b"), "C")
	w.at(t, 2, "not tracked")
	w.put()
	w.at(t, 2, "a PUT without our annotations")
	w.write(func(raw map[string]any) { raw["spec"].(map[string]any)["replicas"] = 5.0 })
	assert.Equal(t, RuleNothing, w.result.Rule)
	w.at(t, 2, "a scale")
	w.remove(cm("a"))
	w.at(t, 3, "deletion of an optional object")
	w.set(cm("a"), "C")
	w.at(t, 4, "creation")
}

func TestReleaseRollsOnce(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.write(setImage("image:2"))
	w.at(t, 1, "configuration first, then the workload")
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, "configmap/a", last.Changes[0].Ref)
}

func TestVerifiedReload(t *testing.T) {
	t.Parallel()
	w := started(t)
	dummy := func(value string) *Rejection {
		return w.write(func(raw map[string]any) { w.mark(raw, Dummy, value) })
	}
	require.Nil(t, dummy(w.hash()))
	w.at(t, 0, "current already: purged only")
	stale := w.hash()
	w.set(cm("a"), "B")
	rejection := dummy(stale)
	require.NotNil(t, rejection)
	assert.EqualValues(t, http.StatusConflict, rejection.Code)
	for _, part := range []string{stale, w.hash(), "configmap/a", "secret/a"} {
		assert.Contains(t, rejection.Message, part)
	}
	require.Nil(t, dummy(stale+"@7"), "another generation: stale, purged")
	assert.NotContains(t, w.marks(), Dummy)
	w.unreadable = true
	rejection = dummy(w.hash())
	require.NotNil(t, rejection)
	assert.EqualValues(t, http.StatusServiceUnavailable, rejection.Code)
	w.unreadable = false
	require.Nil(t, dummy(w.hash()))
	assert.Equal(t, 1, w.restarts)
	assert.Equal(t, w.hash(), w.marks()[Hash])
	w.at(t, 1, "once")
}

func TestHandEditsAreRestored(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]struct {
		slot  Slot
		value func(*world) string
	}{
		"hash":     {Hash, func(*world) string { return "mine" }},
		"record":   {Record, func(*world) string { return "v1:garbage" }},
		"baseline": {Baseline, func(*world) string { return "garbage" }},
		"last reload": {LastReload, func(w *world) string {
			return `{"time":"2026-01-01T00:00:00.000Z","hash":"` + w.marks()[Hash] + `","cause":"x"}`
		}},
		"hint of a record that would hide the next change": {Record, func(w *world) string {
			return strings.ReplaceAll(w.marks()[Record], "@", "@9")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			before := w.marks()
			require.Nil(t, w.write(func(raw map[string]any) { w.mark(raw, edit.slot, edit.value(w)) }))
			assert.Equal(t, before, w.marks())
			assert.NotEmpty(t, w.result.Warnings)
			w.at(t, 0, "no restart")
		})
	}
}

// A Baseline that names the live revision as the hint of an older content would hide a Change that is due.
func TestForgedBaselineHidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	w.create(w.manifest(nil))
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") })
	w.quiesce()
	old := w.configs[cm("b")].rv
	w.set(cm("b"), "B")
	w.write(func(raw map[string]any) {
		w.mark(raw, Baseline, strings.ReplaceAll(w.marks()[Baseline], "@"+old, "@"+w.configs[cm("b")].rv))
	})
	w.at(t, 1, "the change is still due")
}

func TestUnreadableState(t *testing.T) {
	t.Parallel()
	w := started(t)
	before := w.marks()
	w.unreadable = true
	w.set(cm("a"), "B")
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, before, w.marks(), "the old marks are carried over")
	assert.NotEmpty(t, w.result.Warnings)
	require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
	assert.Empty(t, w.marks(), "a new workload gets none")
	w.unreadable = false
	w.restarts = 0
	w.at(t, 0, "the loop adopts")
	w.set(cm("a"), "C")
	w.at(t, 1, "and sees the next change")
}

func TestInstallingRestartsNothing(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]string{"fresh": "", "from SAP's pod-reloader": "efec662502e54e0608b8416d527adc60"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.away = true
			w.set(cm("a"), "A")
			raw := w.manifest(w.lists("a", ""))
			w.mark(raw, Hash, hash)
			w.create(raw)
			w.away = false
			w.at(t, 0, "adopted")
			w.put()
			w.at(t, 0, "a re-apply")
			w.set(cm("a"), "B")
			w.at(t, 1, "the next change")
		})
	}
}

func TestDirectMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.away = true
	w.set(cm("a"), "A")
	w.create(w.manifest(w.lists("a", "")))
	w.at(t, 0, "adopted by the loop")
	w.set(cm("a"), "B")
	w.at(t, 1, "written by the loop")
	assert.NotContains(t, w.marks(), Dummy)
	w.put()
	assert.Equal(t, 2, w.restarts)
	w.at(t, 2, "a PUT that drops the marks costs that one rollout, never a second")
}

func TestControllersTemplateIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := started(t)
	parent := w.marks()
	job := w.manifest(nil)
	w.mark(job, Hash, parent[Hash])
	w.mark(job, Record, parent[Record])
	job["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"controller": true}}
	require.Nil(t, w.create(job))
	assert.Equal(t, parent[Record], w.marks()[Record], "every pod carries what it was started with")
	w.write(func(raw map[string]any) { w.mark(raw, Hash, "next") })
	assert.Equal(t, "next", w.marks()[Hash], "its controller rolls out a new stamp")
}

// A Baseline that says the truth about a Change that is due would settle it without a restart.
func TestTrueBaselineHidesNothing(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	entry, ok := w.state(cm("a")).Entry(w.ring.Keys()[0].ID)
	require.True(t, ok)
	w.write(func(raw map[string]any) {
		w.mark(raw, Baseline, "v1:"+string(w.ring.Keys()[0].ID)+":"+w.marks()[Hash]+":configmap/a="+entry.Short()+"@"+w.configs[cm("a")].rv)
	})
	assert.NotContains(t, w.marks(), Baseline)
	w.at(t, 1, "the change is still due")
}
