package stamp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// A write that has the Record, as kubectl annotate sends it, must have the same budget as one that lacks it.
func TestSequence27WriteThatCarriesOurAnnotations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		template bool
		// over is how far the annotations are over the limit with our annotations.
		over int
		kept []Key
		gone []Key
	}{
		"the Record is shortened":            {over: 10, kept: []Key{Hash, Record, LastReload}},
		"the Record goes first":              {over: 60, kept: []Key{Hash, LastReload}, gone: []Key{Record}},
		"then the explanation is cut":        {over: 300, kept: []Key{Hash}, gone: []Key{Record}},
		"a template that is full":            {template: true, over: 10, kept: []Key{LastReload}, gone: []Key{Hash}},
		"a template that is just permission": {template: true, over: 0, kept: []Key{Hash, Record, LastReload}},
		"a workload that is just permission": {over: 0, kept: []Key{Hash, Record, LastReload}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.set(cm("a"), "B")
			w.at(t, 1, "a change, so that there is a last reload")
			onWorkload, onTemplate := w.object().AnnotationSizes()
			require.Nil(t, w.write(func(raw map[string]any) {
				if tc.template {
					annotate(raw, "big", strings.Repeat("x", maxAnnotations+tc.over-onTemplate-len("big")), "spec", "template")
				} else {
					annotate(raw, "big", strings.Repeat("x", maxOnWorkload+tc.over-onWorkload-len("big")))
				}
			}))
			onWorkload, onTemplate = w.object().AnnotationSizes()
			assert.LessOrEqual(t, onWorkload, maxOnWorkload, "the API server accepts it, and the ReplicaSet")
			assert.LessOrEqual(t, onTemplate, maxAnnotations, "the API server accepts it")
			for _, key := range tc.kept {
				assert.Contains(t, w.managed(), key)
			}
			for _, key := range tc.gone {
				assert.NotContains(t, w.managed(), key)
			}
			assert.Equal(t, len(tc.gone) > 0, len(w.result.Warnings) > 0, "what is left out is said: %v", w.result.Warnings)
			restarts := w.restarts
			w.at(t, restarts, "the write restarts nothing more")
			if _, stamped := w.managed()[Hash]; !stamped {
				return // the next reload does not fit, either
			}
			w.set(cm("a"), "C")
			w.at(t, restarts+1, "a change is still seen")
		})
	}
}

// What fits is kept without a warning, though a reload request would not fit beside it.
func TestReleaseOfAFullWorkloadKeepsTheRecord(t *testing.T) {
	t.Parallel()
	w := started(t)
	onWorkload, _ := w.object().AnnotationSizes()
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", maxOnWorkload-onWorkload-len("big")))
	}))
	before := w.managed()
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, before, w.managed())
	assert.Empty(t, w.result.Warnings)
}

func TestRecordOfTheNextVersionIsDroppedFromAFullWorkload(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.away = true
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:next") }))
	w.away = false
	onWorkload, _ := w.object().AnnotationSizes()
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", maxOnWorkload+3-onWorkload-len("big")))
	}))
	onWorkload, _ = w.object().AnnotationSizes()
	assert.LessOrEqual(t, onWorkload, maxOnWorkload)
	assert.NotContains(t, w.managed(), Record)
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "too large")
}

// The smaller the budget, the less a reload says about itself; what identifies it goes last. A second webhook changes nothing about that.
func TestExplanationOfAReloadGivesWay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bytes           int
		before, changes int
		gone            bool
	}{
		"all fits":                         {bytes: 700, before: 3, changes: 1},
		"the oldest reloads are forgotten": {bytes: 400, before: 1, changes: 1},
		"all earlier ones are":             {bytes: 250, changes: 1},
		"the cause is not named":           {bytes: 220},
		"the reload is not explained":      {bytes: 100, gone: true},
	} {
		for _, second := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/second webhook %t", name, second), func(t *testing.T) {
				t.Parallel()
				w := started(t)
				for i, content := range []string{"B", "C", "D"} {
					w.set(cm("a"), content)
					w.at(t, i+1, "a change")
				}
				require.Nil(t, w.write(func(raw map[string]any) {
					annotate(raw, "big", strings.Repeat("x", w.spare(LastReload)-tc.bytes-len("big")))
				}))
				if second {
					w.other = func(raw map[string]any) { annotate(raw, "other", "1") }
				}
				w.set(cm("a"), "E")
				w.at(t, 4, "a change is still seen")
				onWorkload, _ := w.object().AnnotationSizes()
				assert.LessOrEqual(t, onWorkload, maxOnWorkload)
				last, err := lastOf(w)
				if tc.gone {
					assert.NotContains(t, w.managed(), LastReload)
					return
				}
				assert.Empty(t, w.result.Unwritten)
				require.NoError(t, err)
				assert.Equal(t, w.managed()[Hash], last.Hash)
				assert.Equal(t, []int{tc.before, tc.changes, 1}, []int{len(last.Before), len(last.Changes), len(last.Changes) + last.More})
				require.Nil(t, w.write(setImage("image:2")))
				assert.NotContains(t, strings.Join(w.result.Warnings, " "), "restored", "a shortened explanation is no edit of the user")
			})
		}
	}
}

// spare returns how many bytes an annotation of ours may have, its key included, if there is no other one.
func (w *world) spare(key Key) int {
	view := w.view()
	spare := view.WorkloadBudget
	for _, s := range managedKeys {
		if !s.template && s.key != key {
			spare += view.keySizes[s.key]
		}
	}
	return spare + view.keySizes[key]
}

// What does not fit into the annotations is in the decision, for the loop to report. A write that is no reload has nothing to report.
func TestReloadThatCannotBeExplainedIsInTheDecision(t *testing.T) {
	t.Parallel()
	w := started(t)
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", w.spare(LastReload)-100-len("big")))
	}))
	w.set(cm("a"), "B")
	require.Nil(t, w.write(setImage("image:2")))
	last, err := record.ParseLastReload(w.result.Unwritten)
	require.NoError(t, err)
	assert.Equal(t, w.managed()[Hash], last.Hash)
	assert.Equal(t, record.CauseRelease, last.Cause)
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "too large to explain this reload")
	require.Nil(t, w.write(setImage("image:3")))
	assert.Empty(t, w.result.Unwritten)
}

// A last-reload annotation that was written by hand is never stored, so that its size takes nothing from the Record.
func TestHugeHandwrittenExplanationLeavesTheRecordItsPlace(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]bool{"at the creation": true, "at a release": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.set(cm("a"), "B")
			edited := func(raw map[string]any) {
				setImage("image:2")(raw)
				w.setManaged(raw, LastReload, strings.Repeat("x", 300<<10))
			}
			if created {
				raw := clone(t, w.stored)
				edited(raw)
				require.Nil(t, w.create(raw))
			} else {
				require.Nil(t, w.write(edited))
			}
			assert.Contains(t, w.managed(), Record)
			assert.Empty(t, w.result.Warnings)
			assert.Less(t, len(w.managed()[LastReload]), 1<<10)
		})
	}
}

// Without a Record, a change is found by the hash only where nothing but the workload says what is tracked. The warning says so.
func TestWithoutARecordTheWarningSaysWhetherChangesAreNoticed(t *testing.T) {
	t.Parallel()
	const unnamed, ignored = "a change still restarts the pods, but its cause cannot be named", "changes are not acted on until the config-record is stored"
	for name, tc := range map[string]struct {
		lists, unstamped bool
		restarts         int
		warning          string
	}{
		"lists of SAP":           {lists: true, restarts: 1, warning: unnamed},
		"lists, no hash":         {lists: true, unstamped: true, warning: ignored},
		"annotation of Reloader": {warning: ignored},
		"annotation, no hash":    {unstamped: true, warning: ignored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			annotations := map[string]string{"reloader.stakater.com/auto": "true"}
			if tc.lists {
				annotations = h.lists("b", "")
			}
			raw := h.manifest(annotations)
			h.away = tc.unstamped
			annotate(raw, "big", strings.Repeat("x", h.view().WorkloadBudget-len("big")-10))
			require.Nil(t, h.create(raw))
			if h.away = false; tc.unstamped {
				require.Nil(t, h.write(setImage("image:2")))
			}
			require.NotContains(t, h.managed(), Record)
			assert.Equal(t, tc.unstamped, h.managed()[Hash] == "")
			assert.Contains(t, strings.Join(h.result.Warnings, " "), tc.warning)
			before := h.restarts
			h.set(cm("b"), "B")
			h.at(t, before+tc.restarts, "the change")
		})
	}
}
