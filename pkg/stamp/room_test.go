package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A Baseline that has no room for names is folded, but never over a Change that is pending.
func TestAdoptWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	raw := w.manifest(map[string]string{autoKey: "true"})
	view, _ := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
	annotate(raw, "big", strings.Repeat("x", view.WorkloadRoom-len("big")-50))
	w.away = true
	w.create(raw)
	w.away = false
	w.at(t, 0, "adopted")
	assert.Contains(t, w.marks()[Baseline], "*=")
	w.set(cm("b"), "B")
	w.at(t, 1, "detection stays")
}

func TestNoRoomAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := w.manifest(w.lists("a", ""))
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	require.Nil(t, w.create(raw))
	assert.Empty(t, w.marks())
	assert.Contains(t, strings.Join(w.result.Warnings, ""), "room")
}

// Marks that are carried over must not make a write invalid that has no room for them any more.
func TestCarriedMarksFit(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.at(t, 1, "a change, so that there is a last reload")
	w.unreadable = true
	raw := w.stripped(w.stored)
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-300))
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	require.Nil(t, w.store(raw))
	assert.Empty(t, w.marks())
}

func TestRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("a"), "A")
	w.set(cm("b"), "A")
	raw := w.manifest(w.lists("a,b", "a"))
	annotate(raw, "big", strings.Repeat("x", 255<<10))
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-3-190), "spec", "template")
	require.Nil(t, w.create(raw))
	onWorkload, onTemplate := w.object().AnnotationSizes()
	assert.LessOrEqual(t, onWorkload, maxAnnotations)
	assert.LessOrEqual(t, onTemplate, maxAnnotations)
	assert.Contains(t, w.marks()[Record], "*=", "folded")
	assert.NotEmpty(t, w.result.Warnings)
	w.set(cm("a"), "B")
	w.at(t, 1, "detection stays")
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, "*", last.Changes[0].Ref)
	onWorkload, onTemplate = w.object().AnnotationSizes()
	assert.LessOrEqual(t, onWorkload, maxAnnotations)
	assert.LessOrEqual(t, onTemplate, maxAnnotations)
}
