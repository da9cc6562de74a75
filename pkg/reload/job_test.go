package reload

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// jobFixture is a fixture with the whole loop.
type jobFixture struct {
	*reloadtest.JobFixture

	opts Options
	// past is Dependencies.Past.
	past func(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error)
	// report is what the watch of Jobs calls.
	report func(before, after workload.Summary, listed string)
	// watches are those that fail; nil if all work.
	watches tracking.Watches
	// looked happens once after the Job has been looked at.
	looked func()
}

func newJobFixture(t testing.TB, spec, status map[string]any) *jobFixture {
	t.Helper()
	j := &jobFixture{JobFixture: reloadtest.NewJobFixture(t, spec, status)}
	j.opts = Options{Webhook: true, Refractory: 5 * time.Second, Now: func() time.Time { return j.Now }, Jobs: action.Jobs{
		Follow: true, Store: j.Manifests,
	}}
	return j
}

// leader is a process that leads.
func (j *jobFixture) leader(t testing.TB) *loop {
	t.Helper()
	return j.leaderThatReads(t, j.API)
}

// leaderThatReads is a leader that reads live by another client.
func (j *jobFixture) leaderThatReads(t testing.TB, from client.Reader) *loop {
	t.Helper()
	j.opts.Reader = j.Reader
	l := newLoop(loopDependencies{client: j.API, apiReader: from, mapper: jobMapper(), Dependencies: Dependencies{
		Events: j.Out, Watches: j.watches,
		Store: &reloadtest.JobStore{Fixture: j.JobFixture}, Keys: &reloadtest.Keys{Present: j.Ring, Fresh: j.Ring}, Past: j.past,
		Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
			j.report = changed
			return jobWatch{j}
		},
	}}, j.opts)
	l.leads.Begin(j.Now.Add(-time.Minute))
	l.state.Recreations.Listed()
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(reloadtest.JobKind)))
	return l
}

// reconcile lets a leader look at the Job.
func (j *jobFixture) reconcile(t testing.TB, l *loop) reconcile.Result {
	t.Helper()
	result, err := l.Reconcile(t.Context(), reloadtest.JobKey)
	require.NoError(t, err)
	return result
}

// jobWatch shows the Job of a fixture.
type jobWatch struct{ fixture *jobFixture }

func (w jobWatch) Run(ctx context.Context) { <-ctx.Done() }

func (w jobWatch) Get(_, _ string) (workload.Summary, bool) {
	looked := w.fixture.looked
	w.fixture.looked = nil
	if looked != nil {
		defer looked()
	}
	return w.fixture.Summary()
}

func TestJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	for name, tc := range map[string]struct {
		status map[string]any
		change func(j *jobFixture)
		want   []string
	}{
		"finished":                {status: complete},
		"its last pods end":       {status: map[string]any{"conditions": []any{map[string]any{"type": "SuccessCriteriaMet", "status": "True"}}}},
		"finished ones run again": {status: complete, change: func(j *jobFixture) { j.opts.Jobs.RerunFinished = true }, want: reloadtest.RecreationSteps},
		"the change was undone":   {change: func(j *jobFixture) { j.Set("old") }},
		"of a CronJob":            {change: func(j *jobFixture) { j.Metadata("ownerReferences", []any{map[string]any{"controller": true}}) }},
		"being deleted":           {change: func(j *jobFixture) { j.Metadata("deletionTimestamp", "2026-01-01T00:00:00Z") }},
		"SAP's annotations": {change: func(j *jobFixture) {
			j.Metadata("annotations", map[string]any{annotation.DefaultPrefix + "configmaps": "app"})
		}},
		"an annotation of each": {change: func(j *jobFixture) { j.Annotate(annotation.DefaultPrefix+"configmaps", "app") }, want: reloadtest.RecreationSteps},
		"excluded by a label": {change: func(j *jobFixture) {
			j.Metadata("labels", map[string]any{annotation.DefaultPrefix + "ignored": "true"})
		}},
		"suspended: it is adopted": {change: func(j *jobFixture) { j.Stored().Object["spec"].(map[string]any)["suspend"] = true }, want: []string{"patch Job"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, tc.status)
			if tc.change != nil {
				tc.change(j)
			}
			l := j.leader(t)
			j.reconcile(t, l)
			assert.ElementsMatch(t, tc.want, j.Writes())
			j.API.Calls = nil
			j.reconcile(t, l)
			assert.Empty(t, j.Writes(), "and nothing is done twice")
		})
	}
}

func TestJobsThatAreLeftAloneAreNotQueued(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	q := reloadtest.Open(t, j.leader(t).queue)
	running := reloadtest.Summary(reloadtest.JobKind, j.Stored().Object)
	done := j.Stored().DeepCopy()
	done.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
	none := workload.Summary{Kind: reloadtest.JobKind}

	j.report(none, reloadtest.Summary(reloadtest.JobKind, done.Object), "")
	assert.Zero(t, q.Len(), "it has finished")
	j.report(none, running, "")
	assert.Equal(t, 1, q.Len())
}

func TestJobsAreNotFollowedWithoutReloadersAnnotations(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.opts.Jobs = action.Jobs{}
	l := j.leader(t)
	_, followed := l.tracking.Get(t.Context(), reloadtest.JobKey)
	assert.False(t, followed, "Jobs have no watch")
	l.actions.ResumeRecreations(t.Context())
	assert.Empty(t, j.API.Calls, "there is no place for manifests")
}

// A leader that followed Jobs has deleted one, and the creation was refused. Jobs are switched off, and another leader begins.
func TestRecreationIsCompletedWhereJobsAreNotFollowedAnyMore(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(reloadtest.Resource("Job"), "import", nil)
	refused.ErrStatus.Message = `jobs.batch "import" is forbidden: User "x" cannot get resource "jobs"`
	for name, tc := range map[string]struct {
		refuse  string
		created bool
		note    string
	}{
		"with the permissions": {created: true, note: "Reloaded: created again: configmap/app modified"},
		"without a permission on Jobs": {refuse: "get Job", note: "RecreationForbidden: the re-creation of the Job, which may be deleted, cannot be completed: " +
			"unless it exists, create it from job.json in the Secret pod-reloader/pod-reloader-job-uid-1, and delete the Secret; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = failing("create Job", apierrors.NewForbidden(reloadtest.Resource("Job"), "import", errors.New("exceeded quota")))
			j.reconcile(t, j.leader(t))
			require.Nil(t, j.Stored(), "it is deleted")
			j.API.Before = failing(tc.refuse, refused)
			j.Out.Messages = nil
			j.opts.Jobs.Follow = false
			j.Reader.Dialects = j.Reader.Dialects[:1]
			next := j.leader(t)
			reloadtest.Open(t, next.queue)
			next.actions.ResumeRecreations(t.Context())
			if j.reconcile(t, next); !tc.created {
				j.refused(t, next)
			}
			assert.Equal(t, tc.created, j.Stored() != nil)
			require.Len(t, j.Notes(), 1)
			assert.Contains(t, j.Notes()[0], tc.note)
		})
	}
}

func failing(step string, err error) func(call string) error {
	return func(call string) error {
		if call == step {
			return err
		}
		return nil
	}
}

// How long a change settles, or a write fails that passes by itself, does not decide whether the Job runs again.
func TestJobThatFinishesAfterTheChangeIsCreatedAgain(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	for name, tc := range map[string]struct {
		course func(t *testing.T, j *jobFixture, l *loop)
		want   []string
	}{
		"after": {course: func(_ *testing.T, j *jobFixture, l *loop) {
			j.changed(l)
			j.finish(complete)
		}, want: reloadtest.RecreationSteps},
		"before": {course: func(_ *testing.T, j *jobFixture, l *loop) {
			j.finish(complete)
			j.changed(l)
		}},
		"after a change that was undone, and before another one": {course: func(t *testing.T, j *jobFixture, l *loop) {
			t.Helper()
			j.changed(l)
			j.finish(complete)
			j.Set("old")
			j.Now = j.Now.Add(time.Minute)
			assert.Zero(t, j.reconcile(t, l))
			j.Set("new")
			j.changed(l)
		}},
		"after a change that another leader has dealt with": {course: func(_ *testing.T, j *jobFixture, l *loop) {
			j.changed(l)
			l.state.Changes.BecomeLeader()
			j.finish(complete)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.opts.Settle, j.opts.SettleMax = time.Second, 5*time.Second
			l := j.leader(t)
			j.report(workload.Summary{}, reloadtest.Summary(reloadtest.JobKind, j.Stored().Object), "")
			tc.course(t, j, l)
			j.Now = j.Now.Add(time.Minute)
			j.reconcile(t, l)
			assert.ElementsMatch(t, tc.want, j.Writes())
		})
	}
}

// changed reports a change of configmap/app to a leader.
func (j *jobFixture) changed(l *loop) {
	l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: j.App, Type: configstate.Modified, Received: j.Now})
}

// finish ends the Job, and reports it to the leader.
func (j *jobFixture) finish(status map[string]any) {
	before := reloadtest.Summary(reloadtest.JobKind, j.Stored().DeepCopy().Object)
	j.Stored().Object["status"] = status
	j.report(before, reloadtest.Summary(reloadtest.JobKind, j.Stored().Object), "")
}

// Two installations with different keys that select one workload do not overwrite each other's Records for ever.
func TestRecordUnderAForeignKeyIsAdoptedOnce(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	foreign := j.Stored().GetAnnotations()[annotation.DefaultPrefix+"config-record"]
	j.Ring = digesttest.Ring(t, "b")
	j.Set("new")
	l := j.leader(t)
	require.NotEmpty(t, j.Due(t).Foreign)
	j.reconcile(t, l)
	require.Equal(t, []string{"patch Job"}, j.Writes(), "a lost key restarts nothing")
	require.Equal(t, policy.Nothing, j.Due(t).Action)
	require.Empty(t, j.Due(t).Foreign)

	j.API.Calls = nil
	j.Annotate(annotation.DefaultPrefix+"config-record", foreign)
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Empty(t, j.Writes())
	require.NotEmpty(t, j.Notes())
	assert.Contains(t, j.Notes()[len(j.Notes())-1], "ForeignDigestKey: ")
}

// The manager starts what runs on the leader in no order, and does not wait for the watches. A list that fails is no empty list.
func TestDeletedJobIsQueuedHoweverLateTheQueueOpens(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string]int{"listed at once": 0, "lists fail": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { deletedJobIsQueued(t, failures) })
		})
	}
}

// deletedJobIsQueued has a leader that takes over after a Job was deleted, and whose first lists fail.
func deletedJobIsQueued(t *testing.T, failures int) {
	t.Helper()
	away := errors.New("the connection is lost")
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "create Job" {
			return away
		}
		return nil
	}
	j.reconcile(t, j.leader(t))
	require.Nil(t, j.Stored(), "an earlier leader has deleted the Job, and not created it")
	j.API.Before = func(call string) error {
		if call == "list" && failures > 0 {
			failures--
			return away
		}
		return nil
	}

	j.opts.Reader = j.Reader
	l := newLoop(loopDependencies{client: j.API, apiReader: j.API, Dependencies: Dependencies{
		Events: j.Out,
		Store:  &reloadtest.JobStore{Fixture: j.JobFixture}, Keys: &reloadtest.Keys{Present: j.Ring, Fresh: j.Ring},
	}}, j.opts)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, l.lead(ctx)) })
	synctest.Wait()
	q := reloadtest.Open(t, l.queue)
	<-time.After(time.Minute) // of fake time: each pause is twice the one before
	synctest.Wait()
	require.Equal(t, 1, q.Len())
	key, _ := q.Get()
	assert.Equal(t, reloadtest.JobKey, key)
	stop()
	running.Wait()
}

// The earlier leader has created the Job again, so that no event of the watch follows when its successor ends that: the Job itself is
// looked at once more.
func TestJobIsComparedAfterItsRecreationWasCompleted(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "delete Secret" {
			return errors.New("the connection is lost")
		}
		return nil
	}
	j.reconcile(t, j.leader(t))
	j.API.Before = nil
	next := j.leader(t)
	q := reloadtest.Open(t, next.queue)
	next.actions.ResumeRecreations(t.Context())
	require.Equal(t, 1, q.Len())
	key, _ := q.Get()
	q.Done(key)
	j.reconcile(t, next)
	assert.Equal(t, 1, q.Len())
}

// A former leader that was frozen goes on after the next one has listed the manifests: it stores one, deletes the Job, and ends.
func TestManifestThatAFrozenLeaderStoresLateIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJobFixture(t, nil, nil)
		frozen, next := j.leader(t), j.leader(t)
		q := reloadtest.Open(t, next.queue)
		defer q.ShutDown()
		lists := 0
		j.API.Before = func(call string) error {
			switch {
			case call == "create Job":
				return errors.New("the connection is lost")
			case call != "list":
				return nil
			}
			if lists++; lists == 2 {
				require.Zero(t, q.Len(), "the first list has found nothing")
				j.reconcile(t, frozen)
				require.Nil(t, j.Stored(), "the Job is deleted")
			}
			return nil
		}
		next.resumeRecreations(t.Context())
		require.Equal(t, 2, lists)
		require.Equal(t, 1, q.Len())
		j.API.Before = nil
		j.reconcile(t, next)
		assert.NotNil(t, j.Stored(), "the Job is there again")
	})
}
