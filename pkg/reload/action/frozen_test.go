package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// A leader is frozen right before it deletes a Job. The next one finds the manifest and the Job, and has nothing to do since the content
// has come back. The deletion, which comes late, must not succeed: there is no manifest any more.
func TestJobIsNotDeletedAfterItsManifestWasDropped(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	frozen, next, frozenOnce := j.leader(), j.leader(), false
	j.API.Before = func(call string) error {
		if call != "delete Job" || frozenOnce {
			return nil
		}
		frozenOnce = true
		j.Now = j.Now.Add(20 * time.Second)
		j.Set("old")
		next.ResumeRecreations(t.Context())
		for range 3 {
			j.reconcile(t, next)
		}
		require.Equal(t, policy.Nothing, j.Due(t).Action)
		require.Len(t, j.API.Objects, 1, "the manifest is dropped")
		return nil
	}
	for range 4 {
		j.reconcile(t, frozen)
		j.Now = j.Now.Add(10 * time.Second)
	}
	require.True(t, frozenOnce, "the manifest was dropped while the Job was being deleted")
	require.NotNil(t, j.Stored(), "the Job is not lost")
	assert.Equal(t, "uid-1", string(j.Stored().GetUID()))
	assert.Len(t, j.API.Objects, 1)
}

// The next leader drops the manifest only once the late deletion is sure to be refused.
func TestManifestIsKeptWhileItsJobMayBeDeleted(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{
		"another write was faster": apierrors.NewConflict(reloadtest.Resource("Job"), "import", errors.New("modified")),
		"the write is refused":     apierrors.NewForbidden(reloadtest.Resource("Job"), "import", errors.New("a policy")),
		"no answer":                errors.New("the connection is lost"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = failing("delete Job", errors.New("the connection is lost"))
			j.reconcile(t, j.leader())
			j.Set("old")
			j.API.Before = failing("patch Job", lost)
			next := j.leader()
			next.ResumeRecreations(t.Context())
			assert.Positive(t, j.reconcile(t, next).RequeueAfter)
			require.Len(t, j.API.Objects, 2, "the Job and its manifest")
			j.API.Before = nil
			j.Now = j.Now.Add(time.Hour)
			j.reconcile(t, next)
			assert.Len(t, j.API.Objects, 1)
			assert.Equal(t, "uid-1", string(j.Stored().GetUID()))
		})
	}
}

// A leader that begins finds a Job whose reload is due, before it has listed what an earlier leader has begun: that Job was created again,
// and its manifest is still there.
func TestRecreationWaitsForTheManifestsOfEarlierLeaders(t *testing.T) {
	t.Parallel()
	j := newJobWithManifest(t)
	next, before := j.unlistedLeader(), len(j.Writes())
	assert.Positive(t, j.reconcile(t, next).RequeueAfter)
	assert.Empty(t, j.Writes()[before:], "nothing is begun")
	next.ResumeRecreations(t.Context())
	for range 4 {
		j.Now = j.Now.Add(10 * time.Second)
		j.reconcile(t, next)
	}
	assert.Equal(t, policy.Nothing, j.Due(t).Action)
	assert.Len(t, j.API.Objects, 1, "both manifests are gone")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified", "Reloaded: created again: configmap/app modified"}, j.Notes())
}

// The manifest of an earlier leader is listed between the begin of a reconciliation and the reload. The new Job has changed since that
// manifest was stored: it must be created from a manifest of its own.
func TestRecreationCompletesAManifestThatIsListedMeanwhile(t *testing.T) {
	t.Parallel()
	j := newJobWithManifest(t)
	second := j.Stored()
	second.SetLabels(map[string]string{"team": "blue"})
	next, before := j.unlistedLeader(), len(j.Writes())
	require.Nil(t, next.CompleteRecreation(t.Context(), reloadtest.JobKey), "no manifest is known")
	next.ResumeRecreations(t.Context())
	next.Close(t.Context(), j.act(t, next))
	next.ReleaseSlot(reloadtest.JobKey)
	assert.Equal(t, []string{"patch Job", "delete Secret"}, j.Writes()[before:], "the first re-creation ends before the second one begins")
	for range 2 {
		j.Now = j.Now.Add(10 * time.Second)
		j.reconcile(t, next)
	}
	assert.Equal(t, string(second.GetUID()), j.Stored().GetAnnotations()[j.Manifests.Keys.RecreatedFrom])
	assert.Equal(t, map[string]string{"team": "blue"}, j.Stored().GetLabels())
	assert.Equal(t, policy.Nothing, j.Due(t).Action)
	assert.Len(t, j.API.Objects, 1, "both manifests are gone")
	assert.Equal(t, []string{"Reloaded: created again: configmap/app modified", "Reloaded: created again: configmap/app modified"}, j.Notes())
}

// A user deletes the Job before its manifest is stored.
func TestJobThatAUserHasDeletedIsNotDeletedAgain(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.API.Before = func(call string) error {
		if call == "dry-run create Job" {
			delete(j.API.Objects, reloadtest.JobName)
		}
		return nil
	}
	assert.Zero(t, j.reconcile(t, j.leader()))
	assert.Equal(t, []string{"dry-run create Job"}, j.Writes())
	assert.Empty(t, j.API.Objects)
}

// newJobWithManifest is a Job that a leader has created again, and whose manifest is still there. Its configuration has changed since.
func newJobWithManifest(t *testing.T) *jobFixture {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	j.API.Before = failing("patch Job", errors.New("the connection is lost"))
	j.reconcile(t, j.leader())
	j.API.Before = nil
	j.Set("newest")
	j.Now = j.Now.Add(time.Minute)
	return j
}

// failing lets calls of one kind fail.
func failing(kind string, err error) func(call string) error {
	return func(call string) error {
		if call == kind {
			return err
		}
		return nil
	}
}
