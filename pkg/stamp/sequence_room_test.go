package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A write that has the Record, as kubectl annotate sends it, must have as much room as one that lacks it.
func TestSequence27WriteThatCarriesOurMarks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		template bool
		// over is how far the annotations are over the limit with our marks.
		over int
		kept []Slot
		gone []Slot
	}{
		"the Record is shortened":       {over: 10, kept: []Slot{Hash, Record, LastReload}},
		"the Record goes first":         {over: 60, kept: []Slot{Hash, LastReload}, gone: []Slot{Record}},
		"then the explanation":          {over: 300, kept: []Slot{Hash}, gone: []Slot{Record, LastReload}},
		"a template that has no room":   {template: true, over: 10, kept: []Slot{LastReload}, gone: []Slot{Hash}},
		"a template that is just right": {template: true, over: 0, kept: []Slot{Hash, Record, LastReload}},
		"a workload that is just right": {over: 0, kept: []Slot{Hash, Record, LastReload}},
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
					annotate(raw, "big", strings.Repeat("x", maxAnnotations+tc.over-onWorkload-len("big")))
				}
			}))
			onWorkload, onTemplate = w.object().AnnotationSizes()
			assert.LessOrEqual(t, onWorkload, maxAnnotations, "the API server accepts it")
			assert.LessOrEqual(t, onTemplate, maxAnnotations, "the API server accepts it")
			for _, slot := range tc.kept {
				assert.Contains(t, w.marks(), slot)
			}
			for _, slot := range tc.gone {
				assert.NotContains(t, w.marks(), slot)
			}
			assert.Equal(t, len(tc.gone) > 0, len(w.result.Warnings) > 0, "what is left out is said: %v", w.result.Warnings)
			restarts := w.restarts
			w.at(t, restarts, "the write restarts nothing more")
			if _, stamped := w.marks()[Hash]; !stamped {
				return // the next reload has no room, either
			}
			w.set(cm("a"), "C")
			w.at(t, restarts+1, "a change is still seen")
		})
	}
}

// What fits is kept without a warning, though there is no room for a request for a reload beside it.
func TestReleaseOfAFullWorkloadKeepsTheRecord(t *testing.T) {
	t.Parallel()
	w := started(t)
	onWorkload, _ := w.object().AnnotationSizes()
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", maxAnnotations-onWorkload-len("big")))
	}))
	before := w.marks()
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, before, w.marks())
	assert.Empty(t, w.result.Warnings)
}

func TestRecordOfTheNextVersionGoesWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.away = true
	require.Nil(t, w.write(func(raw map[string]any) { w.mark(raw, Record, "v2:next") }))
	w.away = false
	onWorkload, _ := w.object().AnnotationSizes()
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", maxAnnotations+3-onWorkload-len("big")))
	}))
	onWorkload, _ = w.object().AnnotationSizes()
	assert.LessOrEqual(t, onWorkload, maxAnnotations)
	assert.NotContains(t, w.marks(), Record)
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "too large")
}
