package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// occupied is a CronJob with concurrencyPolicy Forbid one of whose Jobs is active, and whose stamps are made.
type occupied struct {
	*unstamped

	out *reloadtest.Outbox
}

func newOccupied(t *testing.T) *occupied {
	t.Helper()
	o := &occupied{unstamped: newUnstamped(t, true), out: &reloadtest.Outbox{}}
	o.spec = map[string]any{"concurrencyPolicy": "Forbid"}
	o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
	o.starts("long")
	return o
}

// starts replaces the active Job by one with the present pod template.
func (o *occupied) starts(name string) {
	o.status = map[string]any{"active": []any{map[string]any{"name": name}}}
	o.active = []unstructured.Unstructured{{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "creationTimestamp": o.now.Format(time.RFC3339), "ownerReferences": []any{map[string]any{"uid": "u1"}},
		},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{annotation.DefaultPrefix + "config-hash": o.hash},
		}}},
	}}}
}

// change stamps another content.
func (o *occupied) change(t *testing.T, content string) {
	t.Helper()
	o.now = o.now.Add(time.Minute)
	s, verdict := o.subject(t)
	require.Nil(t, o.actions.runs.runIfDue(t.Context(), &s, verdict, o.ring, o.statesOf(content)), "the stamp does not wait")
	last := record.LastReload{
		Time: o.now, Hash: content, Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.After(*o.last)
	o.recorded, o.hash, o.last = content, content, &last
	o.actions.Close(t.Context(), reloaded{s, verdict.Changes, last, 1})
}

// looks looks at the CronJob when it asks for that, for some time.
func (o *occupied) looks(t *testing.T, during time.Duration) {
	t.Helper()
	o.looksAtLeast(t, during, 7*time.Second)
}

// looksAtLeast is looks where the looks may have some other pauses.
func (o *occupied) looksAtLeast(t *testing.T, during, pause time.Duration) {
	t.Helper()
	for end := o.now.Add(during); ; {
		after := o.inOrder(t)
		if after == 0 {
			return
		}
		assert.LessOrEqual(t, after, pause)
		if o.now.Add(after).After(end) {
			o.now = end
			return
		}
		o.now = o.now.Add(after)
	}
}

func TestRunWaitsForTheActiveJobAndTheStampDoesNot(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.change(t, "B")
	o.looks(t, time.Hour)
	assert.Empty(t, o.jobs)
	_, due := o.actions.state.Due.Oldest()
	assert.Zero(t, due, "the reload is made")
	assert.Equal(t, 1, countNotes(o.out, "concurrencyPolicy is Forbid: the run waits until no other Job is active: long"), "one Event: %v", o.out.Notes())
	o.active = nil
	o.looks(t, time.Hour)
	assert.Len(t, o.jobs, 1)
}

func countNotes(out *reloadtest.Outbox, note string) (n int) {
	for _, each := range out.Notes() {
		if each == note {
			n++
		}
	}
	return n
}

func TestRunThatWaited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, o *occupied)
		jobs      int
	}{
		"for what has changed twice": {jobs: 1, meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.change(t, "C")
		}},
		"for a content that is back": {jobs: 1, meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.change(t, "A")
		}},
		"while the CronJob was suspended": {meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.spec["suspend"] = true
			o.looks(t, time.Minute)
			delete(o.spec, "suspend")
		}},
		"until the schedule has started a Job": {meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.starts("scheduled")
			o.looks(t, time.Minute)
		}},
		"until the schedule has started a Job that has not been looked at": {jobs: 1, meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.starts("scheduled")
			o.change(t, "A")
		}},
		"for another change than the Job of the schedule": {jobs: 1, meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.starts("scheduled")
			o.looks(t, time.Minute)
			o.change(t, "C")
		}},
		"while it was left alone": {meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			s, _ := o.subject(t)
			s.View.Excluded = true
			o.actions.Close(t.Context(), o.actions.LeaveAlone(t.Context(), s))
		}},
		"while an annotation ignored it": {meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			s, _ := o.subject(t)
			s.View.Ignored = true
			o.actions.Close(t.Context(), o.actions.LeaveAlone(t.Context(), s))
		}},
		"while the policy changed": {jobs: 1, meanwhile: func(t *testing.T, o *occupied) {
			t.Helper()
			o.spec["concurrencyPolicy"] = "Allow"
			o.looks(t, time.Minute)
			assert.Len(t, o.jobs, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.change(t, "B")
			o.looks(t, time.Minute)
			tc.meanwhile(t, o)
			o.looks(t, time.Minute)
			o.active = nil
			o.looks(t, time.Hour)
			assert.Len(t, o.jobs, tc.jobs)
			o.change(t, "D")
			o.looks(t, time.Hour)
			assert.Len(t, o.jobs, tc.jobs+1, "the next change is another run")
		})
	}
}

// The active Job was started with the content that comes back.
func TestJobFromBeforeTheChangeIsNoRun(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.hash = "A"
	o.starts("long")
	o.change(t, "B")
	o.change(t, "A")
	o.looks(t, time.Minute)
	o.active = nil
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 1)
}

// Only the first leader knew that the run was pending.
func TestRunThatWaitsIsMadeByTheNextLeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(o *occupied)
		jobs      int
	}{
		"the Job is still active":           {meanwhile: func(*occupied) {}, jobs: 1},
		"the Job has ended":                 {meanwhile: func(o *occupied) { o.active, o.status = nil, nil }},
		"the schedule has started another":  {meanwhile: func(o *occupied) { o.starts("scheduled") }},
		"the policy allows several Jobs":    {meanwhile: func(o *occupied) { delete(o.spec, "concurrencyPolicy") }},
		"the controller has not created it": {meanwhile: func(o *occupied) { o.status = nil }, jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.change(t, "B")
			o.looks(t, time.Minute)
			tc.meanwhile(o)
			o.now = o.now.Add(time.Minute)
			o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
			s, _ := o.subject(t)
			o.actions.RequireRun(s)
			o.looks(t, time.Minute)
			assert.Empty(t, o.jobs)
			o.active, o.status = nil, nil
			o.looks(t, time.Minute)
			assert.Len(t, o.jobs, tc.jobs)
		})
	}
}

// unlistable is the error of a list without the permission for it.
func unlistable() error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil)
	err.ErrStatus.Message = `jobs.batch is forbidden: User "x" cannot list resource "jobs"`
	return err
}

// The permissions may be granted anew when the leader changes. An installation that never has them is not asked for them.
func TestNextLeaderThatMayNotListTheJobsLooksAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		without time.Duration
		jobs    int
	}{
		"for some minutes": {without: 3 * time.Minute, jobs: 1},
		"for an hour":      {without: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.change(t, "B")
			o.looks(t, time.Minute)
			o.now = o.now.Add(time.Minute)
			o.unlisted = unlistable()
			o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
			notes := len(o.out.Notes())
			s, _ := o.subject(t)
			o.actions.RequireRun(s)
			o.looksAtLeast(t, tc.without, time.Minute)
			o.unlisted = nil
			o.looksAtLeast(t, time.Minute, time.Minute)
			o.active = nil
			o.looksAtLeast(t, time.Minute, time.Minute)
			assert.Len(t, o.jobs, tc.jobs)
			assert.Len(t, o.out.Notes(), notes+tc.jobs, "that the run waits, once it is known: %v", o.out.Notes())
		})
	}
}

// What an earlier leader may have done for the last reload says nothing of the next one.
func TestNextLeaderRunsForTheNextChange(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"Forbid": "Forbid", "Allow": "Allow", "Replace": "Replace"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.spec, o.active, o.status = map[string]any{"concurrencyPolicy": policy}, nil, nil
			o.change(t, "B")
			require.Len(t, o.jobs, 1)
			o.now = o.now.Add(2 * time.Minute)
			o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
			s, _ := o.subject(t)
			o.actions.RequireRun(s)
			o.change(t, "C")
			o.looks(t, time.Minute)
			assert.Len(t, o.jobs, 2)
		})
	}
}

// A run that has waited ends long after its stamp. The next change is stamped at once all the same.
func TestStampDoesNotWaitForARunThatWasLate(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.change(t, "B")
	o.looks(t, time.Hour)
	o.active = nil
	o.now = o.now.Add(7 * time.Second)
	o.inOrder(t)
	require.Len(t, o.jobs, 1)
	o.now = o.now.Add(-time.Minute + time.Second)
	o.change(t, "C")
	assert.Len(t, o.jobs, 1, "the runs keep their distance")
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 2)
}

// The change was taken back before the stamp: the template was never stamped, and what it runs with has not changed.
func TestRunThatWaitsForAChangeThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		purges bool
		want   state.PendingRun
	}{
		"the webhook finds nothing due": {purges: true, want: state.NoRun},
		"the answer is lost":            {want: state.DueRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.purges = tc.purges
			require.Error(t, o.unanswered(t, false, "B"))
			s, _ := o.subject(t)
			assert.Equal(t, tc.want, o.actions.state.Runs.Pending(s.CronJob()))
			assert.Empty(t, o.jobs)
		})
	}
}

// Until the next leader has looked at the Jobs, another object may change, which only stamps the CronJob.
func TestNextLeaderRunsNothingAgainAfterAReloadThatOnlyStamps(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.active = nil
	o.change(t, "B")
	require.Len(t, o.jobs, 1)
	for made := range o.jobs {
		o.starts(made)
	}
	o.now = o.now.Add(2 * time.Minute)
	o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
	s, _ := o.subject(t)
	o.actions.RequireRun(s)
	last := record.LastReload{
		Time: o.now, Hash: "C", Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "secret/more", Type: record.Modified}},
	}.After(*o.last)
	o.hash, o.last = "C", &last
	o.looks(t, time.Minute)
	o.active = nil
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 1, "the Job for B exists")
}

// A leader that has just started looks at no CronJob whose run cannot have waited.
func TestNextLeaderLooksOnlyWhereARunMayHaveWaited(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]state.PendingRun{"Forbid": state.UnprovenRun, "Allow": state.NoRun, "Replace": state.NoRun} {
		o := newOccupied(t)
		o.spec = map[string]any{"concurrencyPolicy": policy}
		o.active = nil
		o.change(t, "B")
		o.now = o.now.Add(2 * time.Minute)
		o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
		s, _ := o.subject(t)
		o.actions.RequireRun(s)
		assert.Equal(t, want, o.actions.state.Runs.Pending(s.CronJob()), policy)
	}
}

// The stamp may be stored although its answer is lost.
func TestRunThatWaitsIsMadeAfterALostAnswer(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.now = o.now.Add(time.Minute)
	require.Error(t, o.unanswered(t, false, "B"))
	o.recorded = "B"
	last := record.LastReload{Time: o.now, Hash: "0", Cause: record.CauseConfigChange}.After(*o.last)
	o.last = &last
	o.looks(t, time.Minute)
	o.active = nil
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 1)
}
