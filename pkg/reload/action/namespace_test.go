package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// newDeletedJob is a Job that a leader has deleted and not created again yet.
func newDeletedJob(t *testing.T) *jobFixture {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	j.API.NewRootCA()
	j.API.Before = failing("create Job", errors.New("the connection is lost"))
	j.reconcile(t, j.leader())
	require.Nil(t, j.Stored())
	j.API.Before, j.API.Calls = nil, nil
	return j
}

// The namespace is deleted while no leader runs, and another tenant creates one of the same name.
func TestJobIsCreatedAgainInItsOwnNamespaceOnly(t *testing.T) {
	t.Parallel()
	j := newDeletedJob(t)
	j.API.NewRootCA()
	reported := len(j.Notes())
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	assert.Zero(t, j.reconcile(t, next), "nothing is left to do")
	assert.Nil(t, j.Stored())
	assert.Empty(t, j.Writes())
	assert.Len(t, j.Notes(), reported, "an Event would be in the namespace of the other tenant")
	assert.Len(t, j.API.Objects, 2, "the Secret is left: the ConfigMap alone may have been created again")
	next.ResumeRecreations(t.Context())
	assert.Empty(t, next.state.Recreations.First(reloadtest.JobKey), "it is not tried again, nor logged")
}

// The other tenant has a Job of the same name, too.
func TestJobOfALaterNamespaceGetsNoEvent(t *testing.T) {
	t.Parallel()
	j := newDeletedJob(t)
	j.API.NewRootCA()
	j.API.Store(j.Job(nil, nil))
	reported := len(j.Notes())
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	assert.Zero(t, j.reconcile(t, next))
	assert.Empty(t, j.Writes())
	assert.Len(t, j.Notes(), reported)
	assert.Empty(t, next.state.Recreations.First(reloadtest.JobKey))
}

func TestJobIsCreatedAgainOnceItsNamespaceIsKnown(t *testing.T) {
	t.Parallel()
	forbiddenRead := forbidden("ConfigMap")
	for name, tc := range map[string]struct {
		read    error
		deleted bool
	}{
		"the namespace is the same": {},
		"no answer":                 {read: errors.New("the connection is lost")},
		"no permission to read":     {read: forbiddenRead},
		"not there yet":             {deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newDeletedJob(t)
			root := j.API.Objects[reloadtest.RootCAName]
			if tc.deleted {
				delete(j.API.Objects, reloadtest.RootCAName)
			}
			j.API.Before = failing("get ConfigMap", tc.read)
			reported := len(j.Notes())
			next := j.unlistedLeader()
			next.ResumeRecreations(t.Context())
			if again := j.reconcile(t, next); tc.read != nil || tc.deleted {
				assert.Positive(t, again.RequeueAfter)
				require.Nil(t, j.Stored())
				assert.Len(t, j.Notes(), reported, "the namespace may be that of another tenant")
				j.API.Before, j.API.Objects[reloadtest.RootCAName] = nil, root
				j.Now = j.Now.Add(time.Minute)
				j.reconcile(t, next)
			}
			require.NotNil(t, j.Stored())
			assert.Len(t, j.API.Objects, 2, "the Job and the ConfigMap")
		})
	}
}

// What fails before the namespace is compared is not reported either.
func TestUnreadableJobOfALaterNamespaceGetsNoEvent(t *testing.T) {
	t.Parallel()
	j := newDeletedJob(t)
	j.API.NewRootCA()
	j.API.Before = failing("get Job", forbidden("Job"))
	reported := len(j.Notes())
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	assert.Zero(t, j.reconcile(t, next))
	assert.Len(t, j.Notes(), reported)
	assert.Empty(t, next.state.Recreations.First(reloadtest.JobKey))
}

// The ConfigMap is deleted with the namespace.
func TestManifestEndsWithTheNamespaceOfTheJob(t *testing.T) {
	t.Parallel()
	j := newDeletedJob(t)
	delete(j.API.Objects, reloadtest.RootCAName)
	j.API.Before = failing("dry-run create Job", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"))
	next := j.unlistedLeader()
	next.ResumeRecreations(t.Context())
	assert.Zero(t, j.reconcile(t, next))
	assert.Empty(t, j.API.Objects)
}

// An admission webhook of others looks up an object that is gone, or not in its cache yet.
func TestManifestIsKeptWhileAWebhookDeniesTheJobByNotFound(t *testing.T) {
	t.Parallel()
	for name, denied := range denialsByNotFound() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newDeletedJob(t)
			j.API.Before = failing("create Job", denied)
			next := j.unlistedLeader()
			next.ResumeRecreations(t.Context())
			assert.Positive(t, j.reconcile(t, next).RequeueAfter, "it is tried again")
			assert.Contains(t, j.Notes()[len(j.Notes())-1], "RecreationFailed: create the deleted job again from secret")
			root := j.API.Objects[reloadtest.RootCAName]
			delete(j.API.Objects, reloadtest.RootCAName)
			j.API.Before = failing("dry-run create Job", denied)
			j.Now = j.Now.Add(time.Minute)
			assert.Positive(t, j.reconcile(t, next).RequeueAfter, "without the ConfigMap")
			j.API.Before, j.API.Objects[reloadtest.RootCAName] = nil, root
			j.Now = j.Now.Add(time.Minute)
			j.reconcile(t, next)
			assert.NotNil(t, j.Stored())
		})
	}
}

func TestDeletionOfAJobThatAWebhookDeniesByNotFoundIsReported(t *testing.T) {
	t.Parallel()
	for name, denied := range denialsByNotFound() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			j.API.Before = failing("delete Job", denied)
			assert.Positive(t, j.reconcile(t, j.leader()).RequeueAfter, "it is tried again")
			require.Len(t, j.Notes(), 1)
			assert.Contains(t, j.Notes()[0], "RecreationFailed: delete the job: admission webhook")
			assert.Len(t, j.API.Objects, 1, "no Secret is left")
		})
	}
}
