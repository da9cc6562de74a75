package reload

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
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
		"it exists":         {&reloadtest.Store{States: map[reference.Ref]digest.State{app: {UID: "u"}}}, 0, "its event brings the workload back"},
		"it is absent":      {&reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}, 2, "that it is missing, and what follows"},
		"it cannot be read": {&reloadtest.Store{Err: errors.New("away")}, 2, "what the watch says is the best there is"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			l := newLoop(cluster{events: out, Dependencies: Dependencies{Store: tc.store}}, Options{})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
			for range 2 {
				l.problems.report(t.Context(), s, policy.Input{
					Refs: []reference.Ref{app}, Current: map[reference.Ref]digest.State{app: {Absent: true}},
				}, nil)
				l.problems.reportHold(t.Context(), s, policy.Verdict{
					Action: policy.Hold, Changes: []policy.Change{{Ref: app, Type: policy.Deleted}}, Reason: "configmap/app deleted",
				})
			}
			assert.Len(t, out.Messages, tc.count, tc.why)
		})
	}
}
