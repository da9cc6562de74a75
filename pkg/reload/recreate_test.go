package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// recreationSteps are the writes of a re-creation, in order.
var recreationSteps = []string{"dry-run create Job", "create Secret", "delete Job", "create Job", "patch Job", "delete Secret"}

func TestJobIsCreatedAgain(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	l := j.leader(t)
	require.Equal(t, policy.Reload, j.due(t).Action)
	assert.Zero(t, j.reconcile(t, l))
	assert.Equal(t, recreationSteps, j.writes(), "nothing is deleted before the new Job is accepted and its manifest is stored")
	assert.NotEqual(t, "uid-1", string(j.stored().GetUID()))
	assert.Equal(t, policy.Nothing, j.due(t).Action, "its pods start with the present configuration")
	assert.Len(t, j.api.objects, 1, "the Secret is gone")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.notes())

	j.api.calls = nil
	assert.Zero(t, j.reconcile(t, l))
	assert.Zero(t, j.reconcile(t, j.leader(t)), "another leader")
	assert.Empty(t, j.writes(), "it is not created a second time")
	assert.Len(t, j.notes(), 1)
}

func TestJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	for name, tc := range map[string]struct {
		status map[string]any
		change func(j *jobScene)
		want   []string
	}{
		"finished":                {status: complete},
		"finished ones run again": {status: complete, change: func(j *jobScene) { j.opts.Jobs.RerunFinished = true }, want: recreationSteps},
		"the change was undone":   {change: func(j *jobScene) { j.set("old") }},
		"of a CronJob":            {change: func(j *jobScene) { j.metadata("ownerReferences", []any{map[string]any{"controller": true}}) }},
		"being deleted":           {change: func(j *jobScene) { j.metadata("deletionTimestamp", "2026-01-01T00:00:00Z") }},
		"SAP's annotations": {change: func(j *jobScene) {
			j.metadata("annotations", map[string]any{annotation.DefaultPrefix + "configmaps": "app"})
		}},
		"an annotation of each":    {change: func(j *jobScene) { j.annotate(annotation.DefaultPrefix+"configmaps", "app") }, want: recreationSteps},
		"excluded by a label":      {change: func(j *jobScene) { j.metadata("labels", map[string]any{annotation.DefaultPrefix + "ignored": "true"}) }},
		"suspended: it is adopted": {change: func(j *jobScene) { j.stored().Object["spec"].(map[string]any)["suspend"] = true }, want: []string{"patch Job"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobScene(t, nil, tc.status)
			if tc.change != nil {
				tc.change(j)
			}
			l := j.leader(t)
			j.reconcile(t, l)
			assert.ElementsMatch(t, tc.want, j.writes())
			j.api.calls = nil
			j.reconcile(t, l)
			assert.Empty(t, j.writes(), "and nothing is done twice")
		})
	}
}

func (j *jobScene) metadata(field string, value any) {
	_ = unstructured.SetNestedField(j.stored().Object, value, "metadata", field)
}

func (j *jobScene) annotate(key, value string) {
	_ = unstructured.SetNestedField(j.stored().Object, value, "metadata", "annotations", key)
}

// A suspended Job has no pods: those that it starts later have what is there by then.
func TestSuspendedJobAdoptsTheConfiguration(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, map[string]any{"suspend": true}, nil)
	j.reconcile(t, j.leader(t))
	assert.Equal(t, policy.Nothing, j.due(t).Action)
	assert.Equal(t, "uid-1", string(j.stored().GetUID()))
	assert.Empty(t, j.notes(), "nothing is reloaded")
}

func forbidden(kind string) error {
	err := apierrors.NewForbidden(resourceOf(kind), "", nil)
	err.ErrStatus.Message = resourceOf(kind).String() + ` is forbidden: User "x" cannot do that`
	return err
}

func TestRefusalDeletesNothing(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(resourceOf("Job"), "import", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		step   string
		err    error
		reason string
		text   string
	}{
		"quota": {recreationSteps[0], quota, "RecreationFailed", `dry run of the new job: jobs.batch "import" is forbidden: exceeded quota`},
		"no right to create Jobs": {
			recreationSteps[0], forbidden("Job"), "RecreationForbidden", "add the component recreate-jobs, or set reloader.recreateJobs=true in the chart: dry run",
		},
		"no right to create Secrets": {recreationSteps[1], forbidden("Secret"), "RecreationForbidden", "store the manifest of the job in secret pod-reloader/pod-reloader-job-uid-1"},
		"no right to delete Jobs":    {recreationSteps[2], forbidden("Job"), "RecreationForbidden", "delete the job"},
		"the deletion is denied":     {recreationSteps[2], apierrors.NewInvalid(jobKind.GroupKind(), "import", nil), "RecreationFailed", "delete the job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobScene(t, nil, nil)
			j.api.before = func(call string) error {
				if call == tc.step {
					return tc.err
				}
				return nil
			}
			assert.Positive(t, j.reconcile(t, j.leader(t)).RequeueAfter, "it is tried again")
			assert.Equal(t, "uid-1", string(j.stored().GetUID()))
			assert.Len(t, j.api.objects, 1, "no Secret is left")
			require.Len(t, j.notes(), 1)
			assert.Contains(t, j.notes()[0], tc.reason+": ")
			assert.Contains(t, j.notes()[0], tc.text)
		})
	}
}

func TestJobThatChangesBeforeItsDeletionIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	l := j.leader(t)
	j.api.before = func(call string) error {
		if call == "create Secret" {
			j.stored().SetResourceVersion("2")
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Equal(t, "uid-1", string(j.stored().GetUID()), "it may have finished")
	assert.Len(t, j.api.objects, 1)
	assert.Empty(t, j.notes())
	j.api.before = nil
	j.now = j.now.Add(1 * time.Second)
	j.reconcile(t, l)
	assert.NotEqual(t, "uid-1", string(j.stored().GetUID()))
}

// The leader before has created the Job again, and the cache does not show it yet.
func TestRecreationWaitsForTheRefractoryTimeThatIsStored(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	l := j.leader(t)
	behind, _ := jobWatch{j}.Get("shop", "import")
	view, _ := j.opts.Reader.Read(workload.Object{Kind: jobKind, Raw: j.stored().Object})
	j.annotate(annotation.DefaultPrefix+"last-reload", reloadtest.ReloadAt(j.now.Add(-time.Second), view.Managed[stamp.Hash]).String())
	s := l.gather.Subject(workload.Key{Kind: jobKind.ID(), Namespace: "shop", Name: "import"}, behind, state.Arrivals{})
	result := l.actions.Close(t.Context(), l.actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{}))
	assert.Equal(t, 4*time.Second, result.RequeueAfter)
	assert.Empty(t, j.writes())
	j.now = j.now.Add(4 * time.Second)
	assert.Zero(t, l.actions.Close(t.Context(), l.actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{})))
	assert.Equal(t, recreationSteps, j.writes())
}

// A leader stops before or after each of its writes, without an answer: the next one ends what it has begun.
func TestAnyLeaderCompletesARecreation(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		for _, step := range recreationSteps {
			t.Run(when+" "+step, func(t *testing.T) {
				t.Parallel()
				j := newJobScene(t, nil, nil)
				stopped := false
				stop := func(call string) error {
					if stopped = stopped || call == step; stopped {
						return errors.New("the connection is lost")
					}
					return nil
				}
				if when == "before" {
					j.api.before = stop
				} else {
					j.api.after = stop
				}
				j.reconcile(t, j.leader(t))
				require.True(t, stopped)
				j.api.before, j.api.after = nil, nil
				j.now = j.now.Add(10 * time.Second)

				l := j.leader(t)
				require.NoError(t, l.actions.ResumeRecreations(t.Context()))
				for range 4 {
					j.reconcile(t, l)
				}
				require.NotNil(t, j.stored(), "the Job is not lost")
				assert.NotEqual(t, "uid-1", string(j.stored().GetUID()))
				assert.Equal(t, policy.Nothing, j.due(t).Action)
				assert.Len(t, j.api.objects, 1, "the Secret is gone")
				assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.notes())
				assert.Equal(t, 2, j.api.jobs, "one new Job was created")
			})
		}
	}
}

// begun is a scene in which a Job is deleted, and what follows fails.
func begun(t *testing.T) (*jobScene, *loop) {
	t.Helper()
	j := newJobScene(t, nil, nil)
	j.api.before = func(call string) error {
		if call == "create Job" {
			return errors.New("the connection is lost")
		}
		return nil
	}
	l := j.leader(t)
	j.reconcile(t, l)
	require.Nil(t, j.stored())
	require.Len(t, j.api.objects, 1, "the Secret")
	j.api.before = nil
	return j, l
}

func TestJobOfTheUserIsKept(t *testing.T) {
	t.Parallel()
	j, l := begun(t)
	mine := j.job(nil, nil)
	mine.SetLabels(map[string]string{"mine": "true"})
	j.api.store(mine)
	j.reconcile(t, l)
	assert.Equal(t, "true", j.stored().GetLabels()["mine"])
	assert.Len(t, j.api.objects, 1, "the Secret is gone")
	assert.NotContains(t, j.writes(), "patch Secret")
	require.Len(t, j.notes(), 1)
	assert.Contains(t, j.notes()[0], "RecreationDropped: another Job of this name was created")
}

func TestRecreationEndsWithTheNamespace(t *testing.T) {
	t.Parallel()
	terminating := apierrors.NewForbidden(resourceOf("Job"), "import", errors.New("namespace shop is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, err := range map[string]error{
		"terminating": terminating, "gone": apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"),
	} {
		j, l := begun(t)
		j.api.before = func(call string) error {
			if call == "create Job" {
				return err
			}
			return nil
		}
		assert.Zero(t, j.reconcile(t, l), name)
		assert.Empty(t, j.api.objects, name)
		assert.Empty(t, j.notes(), name)
	}
}

func TestRefusedCreationIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	j, l := begun(t)
	j.api.before = func(call string) error {
		if call == "create Job" {
			return apierrors.NewForbidden(resourceOf("Job"), "import", errors.New("exceeded quota"))
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	require.Len(t, j.notes(), 1)
	assert.Equal(t, `RecreationFailed: create the deleted job again from secret pod-reloader/pod-reloader-job-uid-1: jobs.batch "import" is forbidden: exceeded quota`, j.notes()[0])
	assert.Equal(t, "uid-1", string(j.out.Messages[0].Event.Regarding.UID))
	j.api.before = nil
	j.reconcile(t, l)
	assert.NotNil(t, j.stored())
}

func TestRecreationWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	j.metadata("finalizers", []any{"example.org/keep"})
	l := j.leader(t)
	assert.Positive(t, j.reconcile(t, l).RequeueAfter, "it does not wait in a worker")
	assert.Equal(t, []string{"RecreationPostponed: the new Job is created when the old one is gone, which waits for the finalizers example.org/keep"}, j.notes())
	j.api.calls = nil
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Empty(t, j.writes())
	delete(j.api.objects, jobName)
	j.reconcile(t, l)
	require.NotNil(t, j.stored())
	assert.Equal(t, []string{"example.org/keep"}, j.stored().GetFinalizers(), "a finalizer of the manifest stays")
	assert.Equal(t, policy.Nothing, j.due(t).Action)
}

func TestJobsThatAreLeftAloneAreNotQueued(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	q := open(t, j.leader(t))
	running := reloadtest.Summary(jobKind, j.stored().Object)
	done := j.stored().DeepCopy()
	done.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
	none := workload.Summary{Kind: jobKind}

	j.report(none, reloadtest.Summary(jobKind, done.Object))
	assert.Zero(t, q.Len(), "it has finished")
	j.report(none, running)
	assert.Equal(t, 1, q.Len())
}

func TestJobsAreNotFollowedWithoutReloadersAnnotations(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	j.opts.Jobs = action.Jobs{}
	l := j.leader(t)
	_, followed := l.tracking.Get(t.Context(), workload.Key{Kind: jobKind.ID(), Namespace: "shop", Name: "import"})
	assert.False(t, followed)
	require.NoError(t, l.actions.ResumeRecreations(t.Context()))
	assert.Empty(t, j.api.calls, "no right is needed")
}

// How long a change settles, or a write is refused, does not decide whether the Job runs again.
func TestJobThatFinishesAfterTheChangeIsCreatedAgain(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	for name, tc := range map[string]struct {
		course func(t *testing.T, j *jobScene, l *loop)
		want   []string
	}{
		"after": {course: func(_ *testing.T, j *jobScene, l *loop) {
			j.changed(l)
			j.finish(complete)
		}, want: recreationSteps},
		"before": {course: func(_ *testing.T, j *jobScene, l *loop) {
			j.finish(complete)
			j.changed(l)
		}},
		"after a change that was undone, and before another one": {course: func(t *testing.T, j *jobScene, l *loop) {
			t.Helper()
			j.changed(l)
			j.finish(complete)
			j.set("old")
			j.now = j.now.Add(time.Minute)
			assert.Zero(t, j.reconcile(t, l))
			j.set("new")
			j.changed(l)
		}},
		"after a change that another leader has dealt with": {course: func(_ *testing.T, j *jobScene, l *loop) {
			j.changed(l)
			l.state.Changes.Lead()
			j.finish(complete)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobScene(t, nil, nil)
			j.opts.Settle, j.opts.SettleMax = time.Second, 5*time.Second
			l := j.leader(t)
			j.report(workload.Summary{}, reloadtest.Summary(jobKind, j.stored().Object))
			tc.course(t, j, l)
			j.now = j.now.Add(time.Minute)
			j.reconcile(t, l)
			assert.ElementsMatch(t, tc.want, j.writes())
		})
	}
}

// changed reports a change of configmap/app to a leader.
func (j *jobScene) changed(l *loop) {
	l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: j.app, Type: configstate.Modified, Received: j.now})
}

// finish ends the Job, and reports it to the leader.
func (j *jobScene) finish(status map[string]any) {
	before := reloadtest.Summary(jobKind, j.stored().DeepCopy().Object)
	j.stored().Object["status"] = status
	j.report(before, reloadtest.Summary(jobKind, j.stored().Object))
}
