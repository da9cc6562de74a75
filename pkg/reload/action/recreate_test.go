package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// jobFixture is a fixture without the loop: what is due is done at once.
type jobFixture struct{ *reloadtest.JobFixture }

func newJobFixture(t testing.TB, spec, status map[string]any) *jobFixture {
	t.Helper()
	return &jobFixture{reloadtest.NewJobFixture(t, spec, status)}
}

// leader returns the Actions of a process that leads.
func (j *jobFixture) leader() *Actions {
	a := j.unlistedLeader()
	a.state.Recreations.Listed()
	return a
}

// unlistedLeader is one that does not know yet what earlier leaders have begun.
func (j *jobFixture) unlistedLeader() *Actions {
	return newActions(Options{
		Client: j.API, Webhook: true, InScope: notOther, Gates: state.Gates{Refractory: 5 * time.Second}, Jobs: Jobs{Follow: true, Store: j.Manifests},
		Gather: gather.Gatherer{
			Reader: j.Reader, APIReader: j.API, Store: &reloadtest.JobStore{Fixture: j.JobFixture}, Now: func() time.Time { return j.Now },
			Keys: &reloadtest.Keys{Present: j.Ring, Fresh: j.Ring},
		},
	}, j.Out)
}

// reconcile lets a leader do to the Job what is due, at the end of the wait after an attempt that failed.
func (j *jobFixture) reconcile(t testing.TB, a *Actions) reconcile.Result {
	t.Helper()
	j.Now = j.Now.Add(a.state.Deferrals.WaitToWrite(reloadtest.JobKey, j.Now))
	return j.reconcileNow(t, a)
}

// reconcileNow is reconcile at once, as an event leads to it.
func (j *jobFixture) reconcileNow(t testing.TB, a *Actions) reconcile.Result {
	t.Helper()
	defer a.ReleaseSlot(reloadtest.JobKey)
	ended := a.CompleteRecreation(t.Context(), reloadtest.JobKey)
	if ended == nil {
		ended = j.act(t, a)
	}
	return a.Close(t.Context(), ended)
}

func (j *jobFixture) act(t testing.TB, a *Actions) Outcome {
	t.Helper()
	job, ok := j.Summary()
	if !ok {
		return Waiting{}
	}
	s := a.gather.Subject(reloadtest.JobKey, job, state.Arrivals{})
	a.events.EmitReloads(s.Reported())
	in := a.gather.Input(s)
	if verdict := policy.Assess(in).Verdict; verdict.Action == policy.Reload {
		require.True(t, a.MayWrite(s, inflight.Urgent), "a worker is free")
		return a.Reload(t.Context(), s, in, verdict)
	}
	return a.UpToDate(t.Context(), s)
}

func TestJobIsCreatedAgain(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	actions := j.leader()
	require.Equal(t, policy.Reload, j.Due(t).Action)
	assert.Zero(t, j.reconcile(t, actions))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes(), "nothing is deleted before the new Job is accepted and its manifest is stored")
	assert.NotEqual(t, "uid-1", string(j.Stored().GetUID()))
	assert.Equal(t, policy.Nothing, j.Due(t).Action, "its pods start with the present configuration")
	assert.Len(t, j.API.Objects, 1, "the Secret is gone")
	assert.Empty(t, actions.state.Recreations.First(reloadtest.JobKey), "it is not looked for any more")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.Notes())

	j.API.Calls = nil
	assert.Zero(t, j.reconcile(t, actions))
	assert.Zero(t, j.reconcile(t, j.leader()), "another leader")
	assert.Empty(t, j.Writes(), "it is not created a second time")
	assert.Len(t, j.Notes(), 1)
}

// A suspended Job has no pods: those that it starts later have what is there by then.
func TestSuspendedJobAdoptsTheConfiguration(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	j.reconcile(t, j.leader())
	assert.Equal(t, policy.Nothing, j.Due(t).Action)
	assert.Equal(t, "uid-1", string(j.Stored().GetUID()))
	assert.Empty(t, j.Notes(), "nothing is reloaded")
}

// The watch of Jobs may be behind: a Job that runs has the configuration that it was started with.
func TestSuspendedJobThatWasResumedIsNotAdopted(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	j.API.Before = func(call string) error {
		if call == "patch Job" {
			j.Stored().Object["spec"].(map[string]any)["suspend"] = false
			j.Stored().SetResourceVersion("2")
			j.API.Before = nil
		}
		return nil
	}
	actions := j.leader()
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	assert.Empty(t, j.Notes())
	assert.Equal(t, policy.Reload, j.Due(t).Action)
	j.reconcile(t, actions)
	assert.Equal(t, append([]string{"patch Job"}, reloadtest.RecreationSteps...), j.Writes())
}

func TestJobThatWasSuspendedSinceIsAdopted(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "get Job" {
			j.Stored().Object["spec"].(map[string]any)["suspend"] = true
		}
		return nil
	}
	j.reconcile(t, j.leader())
	assert.Equal(t, []string{"patch Job"}, j.Writes())
	assert.Equal(t, policy.Nothing, j.Due(t).Action)
}

func forbidden(kind string) error {
	err := apierrors.NewForbidden(reloadtest.Resource(kind), "", nil)
	err.ErrStatus.Message = reloadtest.Resource(kind).String() + ` is forbidden: User "x" cannot do that`
	return err
}

func TestRefusalDeletesNothing(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(reloadtest.Resource("Job"), "import", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		step   string
		err    error
		reason string
		text   string
	}{
		"quota": {reloadtest.RecreationSteps[0], quota, "RecreationFailed", `dry run of the new job: jobs.batch "import" is forbidden: exceeded quota`},
		"no permission to create Jobs": {
			reloadtest.RecreationSteps[0], forbidden("Job"), "RecreationForbidden", "add the component recreate-jobs, or set reloader.recreateJobs=true in the chart: dry run",
		},
		"the credentials are not accepted": {reloadtest.RecreationSteps[0], apierrors.NewUnauthorized("expired"), "RecreationFailed", "RecreationFailed: dry run of the new job: expired"},
		"a webhook denies it since another object exists": {
			reloadtest.RecreationSteps[0], deniedBy(apierrors.NewAlreadyExists(reloadtest.Resource("Job"), "other").Status()), "RecreationFailed", "dry run of the new job: admission webhook",
		},
		"no permission to create Secrets": {reloadtest.RecreationSteps[1], forbidden("Secret"), "RecreationForbidden", "store the manifest of the job in secret pod-reloader/pod-reloader-job-uid-1"},
		"no permission to delete Jobs":    {reloadtest.RecreationSteps[2], forbidden("Job"), "RecreationForbidden", "delete the job"},
		"the deletion is denied":          {reloadtest.RecreationSteps[2], apierrors.NewInvalid(reloadtest.JobKind.GroupKind(), "import", nil), "RecreationFailed", "delete the job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = func(call string) error {
				if call == tc.step {
					return tc.err
				}
				return nil
			}
			actions := j.leader()
			for range untilReported {
				again := j.reconcile(t, actions).RequeueAfter
				assert.Positive(t, again, "it is tried again")
				j.Now = j.Now.Add(again)
			}
			assert.Equal(t, "uid-1", string(j.Stored().GetUID()))
			assert.Len(t, j.API.Objects, 1, "no Secret is left")
			assert.Empty(t, actions.state.Recreations.First(reloadtest.JobKey), "none is looked for")
			require.Len(t, j.Notes(), 1)
			assert.Contains(t, j.Notes()[0], tc.reason+": ")
			assert.Contains(t, j.Notes()[0], tc.text)
		})
	}
}

func TestJobThatChangesBeforeItsDeletionIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	actions := j.leader()
	j.API.Before = func(call string) error {
		if call == "create Secret" {
			j.Stored().SetResourceVersion("2")
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	assert.Equal(t, "uid-1", string(j.Stored().GetUID()), "it may have finished")
	assert.Len(t, j.API.Objects, 1)
	assert.Empty(t, j.Notes())
	j.API.Before = nil
	j.Now = j.Now.Add(1 * time.Second)
	j.reconcile(t, actions)
	assert.NotEqual(t, "uid-1", string(j.Stored().GetUID()))
}

// The leader before has created the Job again, and the cache does not show it yet.
func TestRecreationWaitsForTheRefractoryTimeThatIsStored(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	actions := j.leader()
	behind, _ := j.Summary()
	view, _ := j.Reader.Read(workload.Object{Kind: reloadtest.JobKind, Raw: j.Stored().Object})
	j.Annotate(annotation.DefaultPrefix+"last-reload", reloadtest.ReloadAt(j.Now.Add(-time.Second), view.Managed[stamp.Hash]).String())
	s := actions.gather.Subject(reloadtest.JobKey, behind, state.Arrivals{})
	result := actions.Close(t.Context(), actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{}))
	assert.Equal(t, 4*time.Second, result.RequeueAfter)
	assert.Empty(t, j.Writes())
	j.Now = j.Now.Add(4 * time.Second)
	assert.Zero(t, actions.Close(t.Context(), actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{})))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes())
}

// A leader stops before or after each of its writes, without an answer: the next one ends what it has begun.
func TestAnyLeaderCompletesARecreation(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		for _, step := range reloadtest.RecreationSteps {
			t.Run(when+" "+step, func(t *testing.T) {
				t.Parallel()
				j := newJobFixture(t, nil, nil)
				stopped := false
				stop := func(call string) error {
					if stopped = stopped || call == step; stopped {
						return errors.New("the connection is lost")
					}
					return nil
				}
				if when == "before" {
					j.API.Before = stop
				} else {
					j.API.After = stop
				}
				j.reconcile(t, j.leader())
				require.True(t, stopped, "the leader ends %s this request", when)
				j.API.Before, j.API.After = nil, nil
				j.Now = j.Now.Add(10 * time.Second)

				actions := j.leader()
				actions.ResumeRecreations(t.Context())
				for range 4 {
					j.reconcile(t, actions)
				}
				require.NotNil(t, j.Stored(), "the Job is not lost")
				assert.NotEqual(t, "uid-1", string(j.Stored().GetUID()))
				assert.Equal(t, policy.Nothing, j.Due(t).Action)
				assert.Len(t, j.API.Objects, 1, "the Secret is gone")
				assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.Notes())
				assert.Equal(t, 2, j.API.Created, "one new Job was created")
			})
		}
	}
}

// begun is a fixture in which a Job is deleted, and what follows fails.
func begun(t *testing.T) (*jobFixture, *Actions) {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "create Job" {
			return errors.New("the connection is lost")
		}
		return nil
	}
	actions := j.leader()
	j.reconcile(t, actions)
	require.Nil(t, j.Stored())
	require.Len(t, j.API.Objects, 1, "the Secret")
	j.API.Before = nil
	return j, actions
}

func TestJobOfTheUserIsKept(t *testing.T) {
	t.Parallel()
	j, actions := begun(t)
	mine := j.Job(nil, nil)
	mine.SetLabels(map[string]string{"mine": "true"})
	j.API.Store(mine)
	j.reconcile(t, actions)
	assert.Equal(t, "true", j.Stored().GetLabels()["mine"])
	assert.Len(t, j.API.Objects, 1, "the Secret is gone")
	assert.NotContains(t, j.Writes(), "patch Secret")
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationDropped: another Job of this name was created")
}

func TestRecreationEndsWithTheNamespace(t *testing.T) {
	t.Parallel()
	terminating := apierrors.NewForbidden(reloadtest.Resource("Job"), "import", errors.New("namespace shop is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, err := range map[string]error{
		"terminating": terminating, "gone": apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"),
	} {
		j, actions := begun(t)
		j.API.Before = func(call string) error {
			if call == "create Job" {
				return err
			}
			return nil
		}
		assert.Zero(t, j.reconcile(t, actions), name)
		assert.Empty(t, j.API.Objects, name)
		assert.Empty(t, j.Notes(), name)
	}
}

func TestRefusedCreationIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	j, actions := begun(t)
	j.API.Before = func(call string) error {
		if call == "create Job" {
			return apierrors.NewForbidden(reloadtest.Resource("Job"), "import", errors.New("exceeded quota"))
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	require.Len(t, j.Notes(), 1)
	assert.Equal(t, `RecreationFailed: create the deleted job again from secret pod-reloader/pod-reloader-job-uid-1: jobs.batch "import" is forbidden: exceeded quota`, j.Notes()[0])
	assert.Equal(t, "uid-1", string(j.Out.Messages[0].Event.Regarding.UID))
	j.API.Before = nil
	j.reconcile(t, actions)
	assert.NotNil(t, j.Stored())
}

func TestRecreationWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.Metadata("finalizers", []any{"example.org/keep"})
	actions := j.leader()
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter, "it does not wait in a worker")
	assert.Equal(t, []string{"RecreationPostponed: the new Job is created when the old one is gone, which waits for the finalizers example.org/keep"}, j.Notes())
	j.API.Calls = nil
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	assert.Empty(t, j.Writes())
	delete(j.API.Objects, reloadtest.JobName)
	j.reconcile(t, actions)
	require.NotNil(t, j.Stored())
	assert.Equal(t, []string{"example.org/keep"}, j.Stored().GetFinalizers(), "a finalizer of the manifest stays")
	assert.Equal(t, policy.Nothing, j.Due(t).Action)
}
