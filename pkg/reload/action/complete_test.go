package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// A user deletes the Job after the loop has read it: the user's deletion counts, at whichever step it comes.
func TestJobThatAUserDeletesIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, step := range reloadtest.RecreationSteps[:3] {
		t.Run("before "+step, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = func(call string) error {
				if call == step {
					delete(j.API.Objects, reloadtest.JobName)
				}
				return nil
			}
			actions := j.leader()
			assert.Zero(t, j.reconcile(t, actions), "nothing is left to do")
			assert.Nil(t, j.Stored())
			assert.Empty(t, j.API.Objects, "the manifest is gone, so that no other leader creates it")
			assert.Empty(t, actions.state.Recreations.First(reloadtest.JobKey))
			assert.Empty(t, j.Notes(), "nothing was reloaded")
		})
	}
}

// The manifest cannot be deleted, so that the loop comes back to it.
func TestJobThatAUserDeletesAfterItWasCreatedAgainStaysDeleted(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "delete Secret" {
			return forbidden("Secret")
		}
		return nil
	}
	actions := j.leader()
	assert.NotZero(t, j.reconcile(t, actions), "the manifest is still there")
	assert.NotNil(t, j.Stored())
	delete(j.API.Objects, reloadtest.JobName)
	j.API.Before = nil
	assert.Zero(t, j.reconcile(t, actions))
	assert.Empty(t, j.API.Objects, "the Job is not created a second time, and the manifest is gone")
	assert.Contains(t, j.Notes(), "Reloaded: created again: configmap/app modified")
}

// Its ttlSecondsAfterFinished removes it.
func TestJobThatIsGoneBeforeItsLastReloadIsWrittenIsReported(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = failing("patch Job", errors.New("the connection is lost"))
	actions := j.leader()
	j.reconcile(t, actions)
	delete(j.API.Objects, reloadtest.JobName)
	assert.Zero(t, j.reconcile(t, actions))
	assert.Equal(t, 2, j.API.Created, "one new Job was created")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.Notes())
}

// The next apply of the user would conflict with pod-reloader else.
func TestFieldsOfTheNewJobBelongToTheirFormerOwners(t *testing.T) {
	t.Parallel()
	owned := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}}
	}
	for name, tc := range map[string]struct{ present, want string }{
		"pod-reloader has created it":   {present: "pod-reloader", want: "gitops"},
		"another writer has come since": {present: "kubectl", want: "kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.Stored().SetManagedFields(owned("gitops"))
			j.API.After = failing("create Job", errors.New("the connection is lost"))
			actions := j.leader()
			j.reconcile(t, actions)
			j.Stored().SetManagedFields(owned(tc.present))
			j.API.After = nil
			assert.Zero(t, j.reconcile(t, actions))
			assert.Equal(t, owned(tc.want), j.Stored().GetManagedFields())
		})
	}
}

// A leader is killed after the creation, and the next one has another --annotation-prefix.
func TestJobThatWasCreatedAgainUnderAnotherPrefixIsReported(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	owners := []metav1.ManagedFieldsEntry{{Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply}}
	j.Stored().SetManagedFields(owners)
	j.API.After = failing("create Job", errors.New("the connection is lost"))
	j.reconcile(t, j.leader())
	require.Empty(t, j.Notes())
	j.API.After = nil
	keys, err := annotation.NewKeys("example.org")
	require.NoError(t, err)
	j.Reader.Keys, j.Manifests.Keys = keys, keys
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	j.reconcile(t, next)
	assert.Len(t, j.API.Objects, 1, "the manifest is gone")
	assert.Equal(t, 2, j.API.Created, "one new Job was created")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.Notes())
	assert.Contains(t, j.Stored().GetAnnotations(), keys.LastReload)
	assert.Equal(t, owners, j.Stored().GetManagedFields())
}

// The clock of this process is behind that of the API server, which has created the new Job a moment ago.
func TestRecreationIsNotDatedBeforeTheCreation(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.After = failing("create Job", errors.New("the connection is lost"))
	j.reconcile(t, j.leader())
	j.API.After = nil
	created := j.Now.Add(time.Minute).UTC().Truncate(time.Second)
	j.Stored().SetCreationTimestamp(metav1.NewTime(created))
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	j.reconcile(t, next)
	last, err := record.ParseLastReload(j.Stored().GetAnnotations()[j.Manifests.Keys.LastReload])
	require.NoError(t, err)
	assert.Equal(t, created, last.Time)
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified"}, j.Notes())
}

// Where Jobs are followed and not created again, an installation has neither the permission to list the manifests nor that to read a Job.
func TestJobThatMayNotBeReadIsReportedAndNotPostponed(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = failing("get Job", forbidden("Job"))
	actions := j.unlistedLeader()
	for range untilReported {
		assert.Empty(t, j.Notes())
		j.Now = j.Now.Add(j.reconcile(t, actions).RequeueAfter)
	}
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationForbidden: the Job keeps the configuration that it was started with")
	assert.Empty(t, j.Writes())
}

// A policy may refuse each update of a Job, or a webhook may have no backend for long. The Job finishes and is removed after its
// ttlSecondsAfterFinished, and the leader changes.
func TestJobWhoseLastReloadIsRefusedIsCreatedOnce(t *testing.T) {
	t.Parallel()
	noBackend := apierrors.NewInternalError(errors.New(`failed calling webhook "jobs.example.org": no endpoints available`))
	for name, tc := range map[string]struct {
		patch, deletion error
		attempts        int
	}{
		"refused, the manifest is deleted":    {forbidden("Job"), nil, 1},
		"refused, deletion without an answer": {forbidden("Job"), errors.New("the connection is lost"), 1},
		"a webhook without a backend":         {noBackend, nil, 10},
		"a webhook that hangs":                {errNoAnswer, nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = failing("patch Job", tc.patch)
			j.API.After = failing("delete Secret", tc.deletion)
			actions := j.leader()
			for range tc.attempts {
				j.reconcile(t, actions)
			}
			assert.Len(t, j.API.Objects, 1, "the manifest is gone")
			j.reconcile(t, actions)
			delete(j.API.Objects, reloadtest.JobName)
			j.API.Before, j.API.After = nil, nil
			next := j.unlistedLeader()
			next.ResumeRecreations(t.Context())
			j.reconcile(t, next)
			assert.Equal(t, 2, j.API.Created, "one new Job was created")
			notes := j.Notes()
			assert.Contains(t, notes, "Reloaded: created again: configmap/app modified")
			assert.Contains(t, notes, "RecreationFailed: the Job was created again, but its last-reload annotation cannot be written: "+tc.patch.Error())
		})
	}
}

// What failed before the Job existed says nothing about its last-reload.
func TestLastReloadIsRetriedAfterACreationThatFailedForLong(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{"created": nil, "created without an answer": errNoAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			left := map[string]int{"create Job": state.Persistent + 2, "patch Job": 1}
			j.API.Before = func(call string) error {
				if left[call] == 0 {
					return nil
				}
				left[call]--
				return apierrors.NewInternalError(errors.New(`failed calling webhook "jobs.example.org": no endpoints available`))
			}
			j.API.After = failing("create Job", lost)
			actions := j.leader()
			for range state.Persistent + 5 {
				j.reconcile(t, actions)
			}
			assert.Len(t, j.API.Objects, 1, "the manifest is gone")
			_, err := record.ParseLastReload(j.Stored().GetAnnotations()[j.Manifests.Keys.LastReload])
			require.NoError(t, err)
			for _, note := range j.Notes() {
				assert.NotContains(t, note, "its last-reload annotation cannot be written")
			}
		})
	}
}

// Its manifest has the reload until that is written or reported.
func TestJobWhoseLastReloadFailsForAWhileIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, failed := range map[string]map[string]error{
		"no answer":                            {"patch Job": errors.New("the connection is lost")},
		"no permission to write or delete yet": {"patch Job": forbidden("Job"), "delete Secret": forbidden("Secret")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = func(call string) error { return failed[call] }
			actions := j.leader()
			j.reconcile(t, actions)
			assert.Len(t, j.API.Objects, 2, "the Job and its manifest")
			j.API.Before = nil
			j.reconcile(t, actions)
			j.reconcile(t, actions)
			assert.Len(t, j.API.Objects, 1)
			reloaded := 0
			for _, note := range j.Notes() {
				if note == "Reloaded: created again: configmap/app modified" {
					reloaded++
				}
			}
			assert.Equal(t, 1, reloaded)
		})
	}
}

// A tenant may write the configuration all the time while something hinders the re-creation.
func TestConfigEventsDoNotRepeatARecreation(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection is lost")
	for name, tc := range map[string]struct {
		finalizers []any
		refused    map[string]error
	}{
		"the old Job has a finalizer":        {finalizers: []any{"example.org/keep"}},
		"recreation-canceled is refused":     {refused: map[string]error{"delete Job": lost, "patch Job": forbidden("Job")}},
		"the last-reload gets no answer":     {refused: map[string]error{"patch Job": lost}},
		"the manifest may not be deleted":    {refused: map[string]error{"delete Secret": forbidden("Secret")}},
		"the new Job is refused by a policy": {refused: map[string]error{"create Job": forbidden("Job")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			if tc.finalizers != nil {
				j.Metadata("finalizers", tc.finalizers)
			}
			j.API.Before = func(call string) error { return tc.refused[call] }
			actions := j.leader()
			for range 2 {
				require.Positive(t, j.reconcile(t, actions).RequeueAfter)
			}
			j.API.Calls = nil
			j.Now = j.Now.Add(time.Millisecond)
			actions.state.Changes.EventArrived(reloadtest.JobKey, j.Now)
			wait := j.reconcileNow(t, actions).RequeueAfter
			assert.Positive(t, wait)
			assert.LessOrEqual(t, wait, 3*time.Second)
			assert.Empty(t, j.API.Calls)

			actions.state.Forget(reloadtest.JobKey) // the watch shows the end of the old Job
			j.reconcileNow(t, actions)
			assert.NotEmpty(t, j.API.Calls)
		})
	}
}
