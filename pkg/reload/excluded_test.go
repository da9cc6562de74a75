package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// A user excludes a workload because of a restart: the leader that made it may have ended before it could write its Event.
func TestReloadBeforeTheExclusionIsReported(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	last := record.LastReload{
		Time: now.Add(-time.Second), Hash: "abc", Cause: record.CauseConfigChange,
		Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}
	for name, exclude := range map[string]func(*gather.Subject){
		"a label ignores it":           func(s *gather.Subject) { s.View.Ignored, s.View.Excluded = true, true },
		"the workload has no template": func(s *gather.Subject) { s.View.Excluded = true },
		"no annotation asks for one":   func(s *gather.Subject) { s.View.Intent.Asked = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, writer := &reloadtest.Outbox{}, &refusing{}
			l, s := dueLoop(t, loopDependencies{client: writer, Dependencies: Dependencies{Events: out}}, Options{Now: func() time.Time { return now }})
			l.leads.Begin(now.Add(-time.Minute))
			s.View.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
			exclude(&s)
			l.state.Runs.Require(s.CronJob(), state.DueRun)
			for range 2 {
				l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
			}
			assert.Equal(t, []string{"pod template updated: configmap/app modified"}, out.Notes(), "once")
			assert.Zero(t, writer.writes)
			assert.Equal(t, state.NoRun, l.state.Runs.Pending(s.CronJob()), "no run waits until it is included again")
		})
	}
}

// The cache may be behind: what it shows was reported when it was made.
func TestExcludedWorkloadWithAnUnseenWriteIsNotReportedAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out := &reloadtest.Outbox{}
	l, s := dueLoop(t, loopDependencies{client: &refusing{}, Dependencies: Dependencies{Events: out}}, Options{Now: func() time.Time { return now }})
	l.leads.Begin(now.Add(-time.Minute))
	last := record.LastReload{Time: now.Add(-time.Second), Hash: "abc", Cause: record.CauseConfigChange}
	s.View.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
	s.View.Ignored = true
	l.state.Writes.RecordWrite(s.Key, s.Object.Generation()+1, now)
	l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
	assert.Empty(t, out.Notes())
}
