package stamp

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// long is how many names of a list have room in annotations.
const long = 45_000

// longList returns the first version of a workload with a list as long as can be, besides an object that is tracked and
// not listed. All of it is absent, but for the last one of the list.
func longList(t testing.TB) (Request, Live) {
	t.Helper()
	w := newWorld(t)
	names := make([]string, 0, long+1)
	for i := range long {
		names = append(names, fmt.Sprintf("x%04d", long-i)) // not in the order of Refs
	}
	w.set(cm(names[long-1]), "there")
	lists := w.lists(strings.Join(append(names, names[0]), ","), "typo")
	lists[autoKey] = "true"
	req, _ := w.reader.NewRequest(nil, workload.Object{Kind: w.kind, Raw: w.manifest(lists)})
	return req, w.live(req.New.Intent.Refs())
}

// longBaseline returns the write of a Baseline over all of a long list by who knows that nothing of it is there.
func longBaseline(t testing.TB) (Request, Live) {
	t.Helper()
	req, live := longList(t)
	for ref := range live.States {
		live.States[ref] = digest.State{Absent: true}
	}
	newest, _ := live.Ring.Newest()
	rec, _, err := record.New(newest.ID, live.States, math.MaxInt)
	require.NoError(t, err)
	req.Create, req.Old = false, req.New
	req.New.Marks = Marks{Baseline: record.Baseline{Record: rec}.String()}
	return req, live
}

func TestMissingOfALongList(t *testing.T) {
	t.Parallel()
	req, live := longList(t)
	warnings := missing(req, live)
	require.Len(t, warnings, 1)
	told := warnings[0]
	assert.Contains(t, told, "configmap/x0002, configmap/x0003,", "in order, each once, and not what is there")
	assert.Contains(t, told, fmt.Sprintf(" %d more;", long-8), "the listed Secret too, but not the tracked object that nobody listed")
}

func TestBaselineOfALongList(t *testing.T) {
	t.Parallel()
	req, live := longBaseline(t)
	assert.True(t, req.baselineIsTrue(req.compare(live), live))
	refs := req.New.Intent.Refs()
	live.States[refs[long/2]] = digest.State{UID: "u"}
	assert.False(t, req.baselineIsTrue(req.compare(live), live), "one of them has come")
}

func BenchmarkLongList(b *testing.B) {
	b.Run("missing", func(b *testing.B) {
		req, live := longList(b)
		for b.Loop() {
			missing(req, live)
		}
	})
	b.Run("baseline", func(b *testing.B) {
		req, live := longBaseline(b)
		verdict := req.compare(live)
		for b.Loop() {
			req.baselineIsTrue(verdict, live)
		}
	})
}
