package action

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
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

// released is a CronJob that a release has stamped for a change of configmap/app.
type released struct {
	*batch

	now     time.Time
	actions *Actions
	last    record.LastReload
	// stamped is the hash of the template where that is not the one of the last reload.
	stamped string
}

func newReleased(spec map[string]any, notifyOnly bool) *released {
	r := &released{batch: &batch{uid: "u1", spec: spec, jobs: map[string]int{}}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.last = record.LastReload{
		Time: r.now, Hash: "1", Cause: record.CauseRelease, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}
	return r.leader(notifyOnly)
}

// leader is the same with another process that leads, for a minute so far.
func (r *released) leader(notifyOnly bool) *released {
	r.actions = newActions(Options{
		Client: r.batch, Gates: state.Gates{Refractory: 5 * time.Second},
		Gather: gather.Gatherer{APIReader: r.batch, Now: func() time.Time { return r.now }, Settings: stamp.Settings{NotifyOnly: notifyOnly}},
	}, &reloadtest.Outbox{})
	return r
}

// release is another release some time later, which has stamped another change.
func (r *released) release(later time.Duration, hash string) {
	next := r.last
	next.Time, next.Hash = r.last.Time.Add(later), hash
	r.last = next.After(r.last)
}

// look sees the last reload for the first time or again, and does what is left where nothing is due. It returns when to look again.
func (r *released) look(t *testing.T, isNew bool) time.Duration {
	t.Helper()
	r.actions.gather.Reader = bothDialects(t)
	s, _ := dueCronJob(true)
	s.View.Intent.Tracked[reference.Ref{Kind: reference.Secret, Name: "listed"}] = annotation.Trigger{}
	r.reload = r.last.String()
	s.View.Managed = stamp.Managed{stamp.Hash: cmp.Or(r.stamped, r.last.Hash), stamp.LastReload: r.reload}
	if isNew {
		r.actions.RequireRun(s)
	}
	return r.actions.Close(t.Context(), r.actions.UpToDate(t.Context(), s)).RequeueAfter
}

func TestReleaseThatBringsAChangeRunsTheCronJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change     func(r *released)
		spec       map[string]any
		notifyOnly bool
		jobs       int
	}{
		"the change runs the CronJob":               {jobs: 1},
		"one of its changes, which are not named":   {change: func(r *released) { r.last = r.last.Shortest() }, jobs: 1},
		"the change stamps only":                    {change: func(r *released) { r.last.Changes[0].Ref = "secret/listed" }},
		"the release has brought no change":         {change: func(r *released) { r.last.Changes = nil }},
		"the loop has made the reload":              {change: func(r *released) { r.last.Cause = record.CauseConfigChange }},
		"the release edits the lists as well":       {change: func(r *released) { r.last.Cause = record.CauseListEdit }, jobs: 1},
		"the release lists what runs the CronJob":   {change: func(r *released) { r.last.Changes[0].Type = record.Listed }},
		"some of the edits of lists are not named":  {change: func(r *released) { r.last = r.last.Shortest(); r.last.Cause = record.CauseListEdit }},
		"the reload was before this process leads":  {change: func(r *released) { r.last.Time = r.now.Add(-time.Hour) }},
		"changes are notified instead of reloading": {notifyOnly: true},
		"the template is not that of the reload":    {change: func(r *released) { r.stamped = "2" }},
		"the CronJob is suspended":                  {spec: map[string]any{"suspend": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReleased(tc.spec, tc.notifyOnly)
			if tc.change != nil {
				tc.change(r)
			}
			for look := range 3 {
				assert.Zero(t, r.look(t, look == 0))
			}
			assert.Len(t, r.jobs, tc.jobs)
			r.leader(tc.notifyOnly).look(t, true)
			assert.Len(t, r.jobs, tc.jobs, "another leader makes no second Job")
		})
	}
}

// A node may boot with a clock that is ahead, and set it after the process has begun to lead.
func TestReleaseAfterTheClockOfTheLeaderWasSetBackRunsTheCronJob(t *testing.T) {
	t.Parallel()
	r := newReleased(nil, false)
	r.now = r.now.Add(-time.Hour)
	r.release(-time.Hour, "2")
	assert.Zero(t, r.look(t, true))
	assert.Len(t, r.jobs, 1)
}

// What a user adds to the annotations may leave no budget for the names of the changes: it is the same reload, and none has come besides.
func TestShortenedLastReloadIsNoOtherReload(t *testing.T) {
	t.Parallel()
	r := newReleased(nil, false)
	r.last.Changes[0].Ref = "secret/listed"
	assert.Zero(t, r.look(t, true))
	r.last = r.last.Shortest()
	assert.Zero(t, r.look(t, true))
	assert.Empty(t, r.jobs, "the change stamps only")
	r.now = r.now.Add(time.Second)
	r.release(time.Second, "2")
	assert.Zero(t, r.look(t, true))
	assert.Len(t, r.jobs, 1, "changes of another release that are not named may run it")
}

// A last reload that is older than the workload was copied from another one, as a backup does that restores it.
func TestReleaseOfAnotherCronJobRunsNothing(t *testing.T) {
	t.Parallel()
	r := newReleased(nil, false)
	r.actions.gather.Reader = bothDialects(t)
	s, _ := dueCronJob(true)
	s.Object = reloadtest.Summary(s.Object.Kind, map[string]any{"metadata": map[string]any{
		"uid": "u1", "name": "backup", "creationTimestamp": r.now.Add(time.Second).Format(time.RFC3339),
	}})
	s.View.Managed = stamp.Managed{stamp.Hash: r.last.Hash, stamp.LastReload: r.last.String()}
	r.actions.RequireRun(s)
	assert.Equal(t, state.NoRun, r.actions.state.Runs.Pending(s.CronJob()))
	r.last.Time = r.now.Add(time.Second)
	s.View.Managed[stamp.LastReload] = r.last.String()
	r.actions.RequireRun(s)
	assert.Equal(t, state.DueRun, r.actions.state.Runs.Pending(s.CronJob()))
}

// The loop has made the Job for the change, and a release stamps it before the loop does.
func TestReleaseAfterTheJobOfItsChangeRunsNothing(t *testing.T) {
	t.Parallel()
	r := newReleased(nil, false)
	r.actions.gather.Reader = bothDialects(t)
	s, verdict := dueCronJob(true)
	require.Nil(t, r.actions.runs.run(t.Context(), &s, verdict, contentOf("1")))
	assert.Zero(t, r.look(t, true))
	assert.Len(t, r.jobs, 1)

	r.release(time.Second, "2")
	assert.Equal(t, 5*time.Second, r.look(t, true), "another release with another change keeps the distance of runs")
	r.release(time.Second, "3")
	r.look(t, true)
	r.now = r.now.Add(5 * time.Second)
	assert.Zero(t, r.look(t, false))
	assert.Len(t, r.jobs, 2, "one run for what two releases have stamped meanwhile")
	r.now = r.now.Add(10 * time.Second)
	r.release(10*time.Second, "1")
	assert.Zero(t, r.look(t, true))
	assert.Len(t, r.jobs, 3, "a content that comes back is a change")
}

// A leader makes the Job for a change and ends. While the next one leads, a release stamps the change before the loop does.
func TestReleaseRunsNothingAfterTheJobOfAnEarlierLeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		earlier *record.LastReload
		hash    string
		jobs    int
	}{
		"the first reload":                 {hash: "1", jobs: 1},
		"a later reload":                   {earlier: &record.LastReload{Hash: "0", Cause: record.CauseRelease}, hash: "1", jobs: 1},
		"the release stamps a newer state": {hash: "2", jobs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReleased(nil, false)
			r.actions.gather.Reader = bothDialects(t)
			s, verdict := dueCronJob(true)
			r.last.Hash = tc.hash
			made := contentOf("1")
			if tc.earlier != nil {
				tc.earlier.Time = r.now.Add(-time.Hour)
				made.Follows = cronrun.NameOf(*tc.earlier)
				r.reload = tc.earlier.String()
				s.View.Managed = stamp.Managed{stamp.Hash: "0", stamp.LastReload: r.reload}
				r.last = r.last.After(*tc.earlier)
			}
			require.Nil(t, r.actions.runs.run(t.Context(), &s, verdict, made))
			assert.Zero(t, r.leader(false).look(t, true))
			assert.Len(t, r.jobs, tc.jobs)
		})
	}
}

// The run waits for a Job that is active, and a release stamps its change meanwhile.
func TestReleaseDoesNotEndTheWaitForAnActiveJob(t *testing.T) {
	t.Parallel()
	r := newReleased(map[string]any{"concurrencyPolicy": "Forbid"}, false)
	r.actions.gather.Reader = bothDialects(t)
	r.active = []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{
		"name": "other", "ownerReferences": []any{map[string]any{"uid": "u1"}},
	}}}}
	s, verdict := dueCronJob(true)
	require.Nil(t, r.actions.runs.run(t.Context(), &s, verdict, contentOf("1")))
	require.True(t, s.Effects.NeedsRun, "the run waits for the active Job")
	for range 2 {
		again := r.look(t, true)
		assert.Positive(t, again)
		r.now = r.now.Add(again)
	}
	again := r.look(t, false)
	assert.Empty(t, r.jobs)
	r.active = nil
	assert.Positive(t, r.look(t, false), "an event does not bring the next attempt forward at once")
	assert.Empty(t, r.jobs)
	r.now = r.now.Add(again)
	assert.Zero(t, r.look(t, false))
	assert.Len(t, r.jobs, 1)
}

// Without a Record, each look finds all to be adopted.
func TestOwedRunIsMadeWithoutARecord(t *testing.T) {
	t.Parallel()
	ring, app := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	r := newReleased(nil, false)
	r.actions.gather.Reader = bothDialects(t)
	s, _ := dueCronJob(true)
	r.reload = r.last.String()
	s.View.Managed = stamp.Managed{stamp.Hash: r.last.Hash, stamp.LastReload: r.reload}
	r.actions.RequireRun(s)
	in := policy.Input{Namespace: "shop", Intent: s.View.Intent, Ring: ring, Current: map[reference.Ref]digest.State{app: {Absent: true}}}
	in.Known.Hash = "another program's"
	found := policy.Assess(in)
	require.NotEmpty(t, found.Verdict.Adopt)
	require.Zero(t, s.View.WorkloadBudget, "no Record fits")
	assert.Zero(t, r.actions.Close(t.Context(), r.actions.Adopt(t.Context(), s, in, found)).RequeueAfter)
	assert.Len(t, r.jobs, 1)
}
