package reload

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestMissingObjectsAreNamedUpToANumber(t *testing.T) {
	t.Parallel()
	assert.Empty(t, missing(nil))
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	assert.Equal(t, "not found in this namespace: configmap/app; check the name, or create it", missing([]reference.Ref{app}))
	thousands := missing(slices.Repeat([]reference.Ref{app}, 45000))
	assert.Contains(t, thousands, "configmap/app and 44992 more; check")
	assert.Less(t, len(thousands), 500, "it is remembered for every workload")
}

// lagging is a Store whose watch has not seen what the API server has.
type lagging struct {
	Store
	live map[reference.Ref]digest.State
	err  error
}

func (l lagging) Live(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return l.live, l.err
}

// What seems to be missing is looked for once more before it is reported: the workload may come to the caches earlier than the
// objects that were created before it.
func TestMissingObjectIsReportedOnlyIfTheAPIServerHasNone(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	tests := map[string]struct {
		store Store
		count int
		why   string
	}{
		"it exists":         {lagging{live: map[reference.Ref]digest.State{app: {UID: "u"}}}, 0, "its event brings the workload back"},
		"it is absent":      {lagging{live: map[reference.Ref]digest.State{app: {Absent: true}}}, 2, "that it is missing, and what follows"},
		"it cannot be read": {lagging{err: errors.New("away")}, 2, "what the watch says is the best there is"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &sent{}
			l := newLoop(cluster{events: out, Dependencies: Dependencies{Store: tc.store}}, Options{})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: viewOf(t)}
			for range 2 {
				l.problems.report(t.Context(), s, policy.Input{
					Refs: []reference.Ref{app}, Current: map[reference.Ref]digest.State{app: {Absent: true}},
				})
				l.problems.reportHold(t.Context(), s, policy.Verdict{
					Action: policy.Hold, Changes: []policy.Change{{Ref: app, Type: policy.Deleted}}, Reason: "configmap/app deleted",
				})
			}
			assert.Len(t, out.messages, tc.count, tc.why)
		})
	}
}

// A stamp that was not stored is reported once, however often the workload is looked at, and again where the next is lost too.
func TestLostStampIsReportedOnceForEach(t *testing.T) {
	t.Parallel()
	out := &sent{}
	l := newLoop(cluster{events: out}, Options{})
	at := func(generation int64) gather.Subject {
		kind := workload.Builtin()[1]
		raw := map[string]any{"metadata": map[string]any{"generation": generation}}
		return gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, Object: summaryOf(kind, raw), View: viewOf(t)}
	}
	for n, generation := range []int64{2, 3} {
		reloaded{at(generation - 1), policy.Verdict{}, record.LastReload{}, generation}.close(t.Context(), l.actions)
		for range 3 {
			l.actions.ReportLostStamp(at(generation))
			InOrder{at(generation)}.close(t.Context(), l.actions)
		}
		assert.Len(t, out.messages, n+1)
	}
	l.actions.ReportLostStamp(at(4))
	assert.Len(t, out.messages, 2, "another writer has written since")
}
