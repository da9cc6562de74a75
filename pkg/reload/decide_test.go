package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRecordOfANewerVersionIsReportedAndHoldsNothing(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	l, s := dueLoop(t, loopDependencies{client: &refusing{}, Dependencies: Dependencies{Events: out}}, Options{})
	s.View.Managed[stamp.Record] = "v2:"
	held := func() { l.events.Warn(s.Reported(), reasonHeld, "held") }
	held()
	for range 2 {
		l.actions.Close(t.Context(), l.decide(t.Context(), s))
	}
	held()
	notes := out.Notes()
	require.Len(t, notes, 3, "what is reported again has ended meanwhile")
	assert.Contains(t, notes[1], "a newer version of pod-reloader")
}

func TestHoldIsReportedAndCounted(t *testing.T) {
	t.Parallel()
	out, registry := &reloadtest.Outbox{}, prometheus.NewRegistry()
	l, s := dueLoop(t, loopDependencies{client: &refusing{}, Dependencies: Dependencies{Events: out, Metrics: registry}}, Options{})
	s.View.Managed[stamp.Record] = reloadtest.StampedView(t, l.keys.Ring()).Managed[stamp.Record]
	s.View.Required = map[reference.Ref]bool{app: true}
	l.store.(*reloadtest.Store).States[app] = digest.State{Absent: true}
	l.actions.Close(t.Context(), l.decide(t.Context(), s))
	notes := out.Notes()
	require.Len(t, notes, 2)
	assert.Contains(t, notes[0], "not found")
	assert.Contains(t, notes[1], "reload held: new pods could not start: configmap/app deleted")
	counted, err := testutil.GatherAndCount(registry, "pod_reloader_verdicts_total")
	require.NoError(t, err)
	assert.Equal(t, 1, counted)
}

// What is wrong with the annotations may be why the workload does not ask for a reload.
func TestProblemOfAnExcludedWorkloadIsReported(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	l, s := dueLoop(t, loopDependencies{client: &refusing{}, Dependencies: Dependencies{Events: out}}, Options{})
	s.Problems, s.View.Intent.Asked = []annotation.Problem{{Message: "no boolean"}}, false
	l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
	assert.Equal(t, []string{"no boolean"}, out.Notes())
}

func TestLostStampOfAWorkloadIsReported(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	l, s := dueLoop(t, loopDependencies{client: &refusing{}, Dependencies: Dependencies{Events: out}}, Options{})
	s.Object = reloadtest.Summary(workload.Deployment(), map[string]any{"metadata": map[string]any{"generation": int64(3)}})
	last := record.LastReload{Time: time.Now(), Hash: "abc", Generation: 3, Cause: record.CauseConfigChange}
	s.View.Managed[stamp.LastReload] = last.String()
	l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
	require.NotEmpty(t, out.Notes())
	assert.Contains(t, out.Notes()[0], "is not stored")
}

// A release has stamped the workload while its configuration changes: it is not restarted once more before that has settled.
func TestChangesSettleAnewAfterAStamp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		stamped bool
		want    time.Duration
	}{
		"the workload was stamped":           {true, 500 * time.Millisecond},
		"changes go on for the longest time": {false, 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{
				Now: func() time.Time { return now }, Settle: time.Second, SettleMax: 5 * time.Second,
			})
			l.leads.Begin(now.Add(-time.Minute))
			l.state.Changes.EventArrived(s.Key, now.Add(-5*time.Second))
			l.state.Changes.EventArrived(s.Key, now.Add(-500*time.Millisecond))
			s.Events = l.state.Changes.BeginAttempt(s.Key)
			if tc.stamped {
				last := record.LastReload{Time: now, Hash: "abc", Cause: record.CauseConfigChange}
				s.View.Managed[stamp.Hash], s.View.Managed[stamp.LastReload] = last.Hash, last.String()
				s.View.Managed[stamp.Record] = "v1:abc:" + s.View.Managed[stamp.Record][len("v1:-:"):]
			}
			assert.Equal(t, tc.want, l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s)).RequeueAfter)
		})
	}
}

// A release has stamped the change of a CronJob before the loop could run it.
func TestRunOfAReleaseIsOwedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{Now: func() time.Time { return now }, Settle: time.Second, SettleMax: 5 * time.Second})
	l.leads.Begin(now.Add(-time.Minute))
	s.Object = reloadtest.Summary(workload.CronJob(), map[string]any{})
	s.View.Intent.Tracked[app] = annotation.Trigger{AtOnce: true}
	last := record.LastReload{
		Time: now, Hash: "abc", Cause: record.CauseRelease, Changes: []record.Change{{Ref: app.String(), Type: record.Modified}},
	}
	s.View.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
	l.state.Changes.EventArrived(s.Key, now) // another change, which has to settle
	s.Events = l.state.Changes.BeginAttempt(s.Key)
	l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
	assert.Equal(t, state.DueRun, l.state.Runs.Pending(s.CronJob()))
	l.state.Runs.ClearPending(s.CronJob())
	l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
	assert.Equal(t, state.NoRun, l.state.Runs.Pending(s.CronJob()), "the reload is not new any more")
}

// A key that is in the ring is not foreign: where it is lost again, it is taken over again.
func TestKeyThatHasReturnedMayBeTakenOverAgain(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{})
	newest, _ := l.keys.Ring().Newest()
	l.state.Takeovers.Record(s.Key, newest.ID, "1")
	l.decide(t.Context(), s)
	assert.True(t, l.state.Takeovers.Allowed(s.Key, newest.ID), "its earlier replacement is forgotten")
}

// An attempt that has waited for nothing puts off no look at what changes next.
func TestChangeAfterAnAttemptIsLookedAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{
		Now: func() time.Time { return now }, Settle: time.Second, SettleMax: 5 * time.Second,
	})
	l.state.Changes.EventArrived(s.Key, now.Add(-time.Second))
	s.Events = l.state.Changes.BeginAttempt(s.Key)
	l.decide(t.Context(), s)
	looks, later := l.state.Changes.EventArrivedFor([]workload.Key{s.Key}, now)
	assert.Equal(t, []workload.Key{s.Key}, looks)
	assert.Empty(t, later)
}

// Only a reload is due: an adoption restarts nothing.
func TestReloadIsDueUntilItIsMade(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct{ occupied, adopts, due bool }{
		"a reload that fails":               {due: true},
		"a reload that waits for a slot":    {occupied: true, due: true},
		"an adoption that fails":            {adopts: true},
		"an adoption that waits for a slot": {occupied: true, adopts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{Now: func() time.Time { return now }})
			if tc.occupied {
				other := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "other"}}
				require.True(t, l.actions.MayWrite(other, inflight.Urgent), "the slot is free")
			}
			if tc.adopts {
				delete(s.View.Managed, stamp.Record)
			}
			l.decide(t.Context(), s)
			since, count := l.state.Due.Oldest()
			if assert.Equal(t, tc.due, count == 1) && tc.due {
				assert.Equal(t, now, since)
			}
		})
	}
}

func TestReloadGetsASlotBeforeAnAdoption(t *testing.T) {
	t.Parallel()
	l, reload := dueLoop(t, loopDependencies{client: &refusing{}}, Options{})
	q := reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	other := workload.Key{Namespace: "shop", Name: "other"}
	require.True(t, l.actions.MayWrite(gather.Subject{Key: other}, inflight.Urgent), "the slot is free")
	adoption := reload
	adoption.Key.Name, adoption.View.Managed = "new", stamp.Managed{}
	l.decide(t.Context(), adoption)
	l.decide(t.Context(), reload)
	l.actions.ReleaseSlot(other)
	require.Equal(t, 1, q.Len())
	key, _ := q.Get()
	assert.Equal(t, reload.Key, key)
}

// Expressions that are not matched yet are asked for again at the pace of the attempts, however often the configuration changes.
func TestUnresolvedWorkloadIsLookedAtWithAPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{Now: func() time.Time { return now }})
	s.View.Unresolved = errors.New("expressions are being matched")
	look := func() time.Duration {
		return l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s)).RequeueAfter
	}
	wait := look()
	assert.Positive(t, wait)
	assert.Equal(t, wait, look())
	now = now.Add(wait)
	assert.Greater(t, look(), wait)
}
