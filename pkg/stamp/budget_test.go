package stamp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestFullTemplateIsNotStamped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := w.manifest(w.lists("a", ""))
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	w.set(cm("a"), "A")
	require.Nil(t, w.create(raw))
	assert.Empty(t, w.managed()[Hash], "a stamp never makes an object invalid")
	rec, err := record.Parse(w.managed()[Record])
	require.NoError(t, err)
	assert.True(t, rec.BelongsTo(""), "the Record belongs to a template without a hash")
	assert.Len(t, rec.Items([]reference.Ref{cm("a")}), 1, "the pods start with the present content")
}

// A patch brings the managed annotations along that the stored object has: they must not make it invalid, either.
func TestPatchThatFillsTheTemplateDropsTheHash(t *testing.T) {
	t.Parallel()
	w := started(t)
	require.NotEmpty(t, w.managed()[Hash])
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	}))
	assert.Empty(t, w.managed()[Hash])
	w.at(t, 1, "the release only")
	w.set(cm("a"), "B")
	require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, "big", "", "spec", "template") }))
	assert.Equal(t, w.hash(), w.managed()[Hash], "the change that came meanwhile is due")
	w.at(t, 2, "the second release brings the change")
}

func TestPatchThatFillsTheWorkloadDropsTheRecord(t *testing.T) {
	t.Parallel()
	w := started(t)
	require.NotEmpty(t, w.managed()[Record])
	require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, "big", strings.Repeat("x", maxOnWorkload-200)) }))
	assert.Empty(t, w.managed()[Record])
	assert.NotEmpty(t, w.managed()[Hash])
	w.set(cm("a"), "B")
	w.at(t, 1, "the hash still detects a change")
}

// Managed annotations that are carried over must not make a write invalid: those beyond the budget are left out.
func TestCarriedAnnotationsFit(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.at(t, 1, "a change, so that there is a last reload")
	w.unreadable = true
	raw := w.stripped(w.stored)
	annotate(raw, "big", strings.Repeat("x", maxOnWorkload-250))
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	require.Nil(t, w.store(raw))
	assert.Empty(t, w.managed())
}

// A write of an excluded workload that lacks the hash gets it back only where it fits into the budget.
func TestExcludedWriteStaysValid(t *testing.T) {
	t.Parallel()
	w := started(t)
	raw := w.stripped(w.stored)
	w.ignore(raw)
	annotate(raw, "big", strings.Repeat("x", maxAnnotations-10), "spec", "template")
	require.Nil(t, w.store(raw))
	assert.NotContains(t, w.managed(), Hash)
	assert.Contains(t, w.managed()[Record], "v1:-:", "the Record is that of a template without a hash")
	delete(w.stored["metadata"].(map[string]any), "labels")
	w.at(t, 1, "the release only")
}

func TestManyRefsAreRecordedWithoutNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var names []string
	for i := range 1100 {
		names = append(names, fmt.Sprintf("configuration-of-tenant-%04d", i))
		w.set(cm(names[i]), "A")
	}
	require.Nil(t, w.create(w.manifest(w.lists(strings.Join(names, ","), ""))))
	assert.Contains(t, w.managed()[Record], ":*")
	assert.Len(t, w.view().Intent.Tracked, reference.MaxTracked)
	w.at(t, 0, "all is known")
	w.set(cm(names[7]), "B")
	w.at(t, 1, "a change")
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, cm(names[7]).String(), last.Changes[0].Ref, "the cause has a name")
}

func TestMissingOfALongList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := make([]string, 0, 900)
	for i := range 900 {
		names = append(names, fmt.Sprintf("x%04d", 900-i)) // not in the order of Refs
	}
	w.set(cm("x0001"), "there")
	w.set(cm("b"), "there")
	lists := w.lists(strings.Join(append(names, names[0]), ","), "typo")
	lists[autoKey] = "true"
	req, _ := w.reader.NewWrite(nil, workload.Object{Kind: w.kind, Raw: w.manifest(lists)})
	refs := req.New.Intent.Refs()
	warnings := missing(req, refs, w.inputs(refs).States)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "configmap/x0002, configmap/x0003,", "in order, each once, and not what is there")
	assert.Contains(t, warnings[0], fmt.Sprintf(" %d more;", 900-8), "the listed Secret too, but not the tracked object that is optional")
}
