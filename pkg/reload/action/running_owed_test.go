package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// A direct stamp has what is read for it, too: the run is decided by that, not by what the watch has shown.
func TestDirectStampRunsForAChangeThatTheWatchHasNotShown(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	other := reference.Ref{Kind: reference.Secret, Name: "other"}
	absent := map[reference.Ref]digest.State{app: {Absent: true}, other: {Absent: true}}
	const entry = "0123456789abcdef"
	for name, tc := range map[string]struct {
		recorded string
		jobs     int
	}{
		"what runs it has changed, too": {recorded: "configmap/app=" + entry + ",secret/other=" + entry, jobs: 1},
		"only what stamps has changed":  {recorded: "configmap/app=-,secret/other=" + entry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &batch{uid: "u1", jobs: map[string]int{}, annotations: map[string]string{
				reloadList: "app", annotation.DefaultPrefix + "secrets": "other",
				annotation.DefaultPrefix + "config-record": "v1:-:" + string(newest.ID) + ":" + tc.recorded,
			}}
			reader := bothDialects(t)
			reader.Dialects = append(reloadtest.Reader().Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnDelete: true})
			actions := newActions(Options{Client: b, Gather: gather.Gatherer{
				Reader: reader, APIReader: b, Keys: &reloadtest.Keys{Present: ring}, Store: &reloadtest.Store{States: absent},
			}}, &reloadtest.Outbox{})
			s, _ := dueCronJob(true)
			shown := policy.Verdict{Action: policy.Reload, Changes: []policy.Change{{Ref: other, Type: policy.Deleted}}}
			assert.IsType(t, failed{}, actions.stamps.write(t.Context(), s, shown), "the API server is away for the patch")
			assert.Len(t, b.jobs, tc.jobs)
		})
	}
}

func TestOwedRunIsMadeOnceNothingIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &batch{uid: "u1", jobs: map[string]int{}}
	actions := newActions(Options{
		Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b, Now: func() time.Time { return now }}, Client: b, Gates: state.Gates{Refractory: 5 * time.Second},
	}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	ended := actions.runs.run(t.Context(), &s, verdict, contentOf("1"))
	require.Nil(t, ended)
	s.Effects.NeedsRun = true
	assert.Positive(t, reloaded{s, verdict.Changes, record.LastReload{Hash: "2"}, 1}.close(t.Context(), actions.base).RequeueAfter, "it is looked at again")

	s, _ = dueCronJob(true)
	s.View.Managed = stamp.Managed{stamp.Hash: "2", stamp.LastReload: "2"}
	b.reload = "2"
	actions.state.Changes.EventArrived(s.Key, now)
	actions.state.Changes.BeginAttempt(s.Key)
	assert.Equal(t, 5*time.Second, actions.UpToDate(t.Context(), s).close(t.Context(), actions.base).RequeueAfter, "the runs keep their distance")
	assert.Len(t, b.jobs, 1)
	assert.False(t, actions.state.Changes.HasPending(s.Key), "the configuration is in order: the time to settle of a later change begins with that")
	now = now.Add(5 * time.Second)
	for range 2 {
		assert.Zero(t, actions.UpToDate(t.Context(), s).close(t.Context(), actions.base).RequeueAfter)
		assert.Len(t, b.jobs, 2, "once")
	}
}
