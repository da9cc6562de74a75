package reload

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// unrecordedJob is a Job that no webhook has stamped, and whose namespace grants the permissions to list and watch Jobs only.
func unrecordedJob(t *testing.T) *jobFixture {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	j.opts.Webhook = false
	unstructured.RemoveNestedField(j.Stored().Object, "metadata", "annotations", j.Manifests.Keys.ConfigRecord)
	unstructured.RemoveNestedField(j.Stored().Object, "spec", "template", "metadata")
	j.API.Before = refuseJobs
	return j
}

// refuseJobs refuses each request for a Job, except those to list and watch them.
func refuseJobs(call string) error {
	if !strings.HasSuffix(call, "Job") {
		return nil
	}
	refused := apierrors.NewForbidden(reloadtest.Resource("Job"), "import", nil)
	refused.ErrStatus.Message = `jobs.batch "import" is forbidden: User "x" cannot do that`
	return refused
}

// A Job that waits, as in a queue, starts with the present configuration: nothing is due meanwhile, and nothing follows when it starts.
func TestSuspendedJobIsAdoptedWithoutPermissionsOnJobs(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	j.API.Before = refuseJobs
	l := j.leader(t)
	assert.Zero(t, j.reconcile(t, l), "nothing is due")
	assert.Empty(t, j.Notes())
	_, due := l.state.Due.Oldest()
	assert.Zero(t, due)
	assert.NotContains(t, j.API.Calls, "get Job")

	j.Stored().Object["spec"].(map[string]any)["suspend"] = false
	j.API.Before, j.API.Calls = nil, nil
	j.Now = j.Now.Add(time.Minute)
	assert.Zero(t, j.reconcile(t, l))
	assert.Empty(t, j.Writes(), "the permissions are granted, and the Job has the present configuration")
}

// A manifest may change both the configuration and the Job. Under constant change, a suspended Job is written no more often than others.
func TestSuspendedJobIsAdoptedBeforeItsConfigurationSettles(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	j.opts.Settle, j.opts.SettleMax = time.Second, 5*time.Second
	l := j.leader(t)
	for n := range 12 {
		j.Set(strconv.Itoa(n))
		l.state.Changes.EventArrived(reloadtest.JobKey, j.Now)
		j.reconcile(t, l)
		j.Now = j.Now.Add(500 * time.Millisecond)
	}
	assert.Equal(t, []string{"patch Job", "patch Job"}, j.Writes(), "of twelve changes in six seconds, the first one and those until its window ended")

	j.Now = j.Now.Add(time.Minute)
	j.reconcile(t, l)
	j.Now = j.Now.Add(time.Minute)
	j.Set("last")
	l.state.Changes.EventArrived(reloadtest.JobKey, j.Now)
	j.reconcile(t, l)
	j.API.Calls = nil
	j.Stored().Object["spec"].(map[string]any)["suspend"] = false
	j.Now = j.Now.Add(time.Minute)
	assert.Zero(t, j.reconcile(t, l))
	assert.Empty(t, j.Writes(), "its pods have started with the last change")
}

// It may have been resumed since, with pods that have started with what was there before the change.
func TestSuspendedJobWhoseWatchFailsIsNotAdoptedWithoutPermissionsOnJobs(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	j.watches, j.API.Before = failingJobs{}, refuseJobs
	l := j.leader(t)
	j.refused(t, l)
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationForbidden: the Job keeps the configuration that it was started with")
	assert.NotContains(t, j.API.Calls, "patch Job")

	j.watches = nil
	l = j.leader(t)
	assert.Zero(t, j.reconcile(t, l), "the watch works, and shows that it is still suspended")
}

// Without the permissions to create Jobs again, what a Job starts with is kept in memory: a change is reported, and nothing else is.
func TestChangeOfAJobThatCannotBeRecordedIsReported(t *testing.T) {
	t.Parallel()
	j := unrecordedJob(t)
	l := j.leader(t)
	assert.Zero(t, j.reconcile(t, l), "nothing is due")
	j.API.Calls = nil
	assert.Zero(t, j.reconcile(t, l))
	assert.Empty(t, j.API.Calls, "it is not tried again")
	assert.Empty(t, j.Notes(), "nothing has changed")

	j.Set("newer")
	j.refused(t, l)
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationForbidden: the Job keeps the configuration that it was started with")

	j.API.Before = nil
	j.API.Calls = nil
	j.Now = j.Now.Add(time.Minute)
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Equal(t, []string{"patch Job"}, j.Writes(), "the guard lets only Jobs be deleted whose configuration is recorded")
	j.Now = j.Now.Add(time.Second)
	j.reconcile(t, l)
	assert.Equal(t, append([]string{"patch Job"}, reloadtest.RecreationSteps...), j.Writes())
}

func TestChangeBackOfAJobThatCannotBeRecordedIsNotReported(t *testing.T) {
	t.Parallel()
	j := unrecordedJob(t)
	l := j.leader(t)
	j.reconcile(t, l)
	j.Set("newer")
	j.Set("new")
	assert.Zero(t, j.reconcile(t, l))
	assert.Empty(t, j.Notes())
}

// A Job of the same name that comes later starts with what is there by then.
func TestRecordInMemoryIsOfOneJob(t *testing.T) {
	t.Parallel()
	j := unrecordedJob(t)
	l := j.leader(t)
	j.reconcile(t, l)
	j.Set("newer")
	j.API.Store(j.Job(nil, nil))
	assert.Zero(t, j.reconcile(t, l))
	assert.Empty(t, j.Notes())
}

// Another writer removes the Record after each write, so that the guard does not let the Job be deleted.
func TestRecordOfAJobThatAnotherWriterRemovesIsWrittenEverLater(t *testing.T) {
	t.Parallel()
	j := unrecordedJob(t)
	l := j.leader(t)
	j.reconcile(t, l)
	j.Set("newer")
	j.API.Before, j.API.Calls = nil, nil
	for range 120 {
		j.Now = j.Now.Add(time.Second)
		j.reconcile(t, l)
		unstructured.RemoveNestedField(j.Stored().Object, "metadata", "annotations", j.Manifests.Keys.ConfigRecord)
	}
	assert.NotEmpty(t, j.Writes())
	assert.LessOrEqual(t, len(j.Writes()), 10)
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecordContested: another writer removes or overwrites the annotation config-record")
	for range 70 {
		j.Now = j.Now.Add(time.Second)
		j.reconcile(t, l)
	}
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes()[len(j.Writes())-len(reloadtest.RecreationSteps):], "the Record remains")
}

// Another writer puts the earlier Record of a suspended Job back after each write.
func TestRecordOfASuspendedJobThatAnotherWriterRevertsIsWrittenEverLater(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	l := j.leader(t)
	before := j.Stored().GetAnnotations()[j.Manifests.Keys.ConfigRecord]
	for range 120 {
		j.Now = j.Now.Add(time.Second)
		j.reconcile(t, l)
		j.Annotate(j.Manifests.Keys.ConfigRecord, before)
	}
	assert.NotEmpty(t, j.Writes())
	assert.LessOrEqual(t, len(j.Writes()), 10)
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecordContested: another writer removes or overwrites the annotation config-record")
}

// With --webhook-url and without the permission to patch Jobs, a change cannot be recorded, so that it is not posted.
func TestMissingPermissionToRecordANotificationIsReportedOnce(t *testing.T) {
	t.Parallel()
	j := unrecordedJob(t)
	j.opts.NotifyOnly = true
	l := j.leader(t)
	j.reconcile(t, l)
	j.Set("newer")
	for range 100 {
		j.Now = j.Now.Add(30 * time.Second)
		assert.Positive(t, j.reconcile(t, l).RequeueAfter, "it is tried again: the permission may be granted")
	}
	require.Len(t, j.Out.Messages, 1, "in less than an hour")
	assert.Contains(t, j.Notes()[0], "ReloadFailed: the change is not posted to --webhook-url, because pod-reloader may not patch the Job to "+
		"record it; add the component recreate-jobs, or set reloader.recreateJobs=true in the chart; or leave Jobs out by "+
		"--ignored-workload-types=jobs: jobs.batch")
}
