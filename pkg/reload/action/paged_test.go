package action

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// manyJobs are Jobs of a CronJob, of which one is active.
func manyJobs(count, active int) []unstructured.Unstructured {
	var jobs []unstructured.Unstructured
	for n := range count {
		job := map[string]any{"metadata": map[string]any{
			"name": fmt.Sprintf("job-%d", n), "ownerReferences": []any{map[string]any{"uid": "u1"}},
		}}
		if n != active {
			job["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		}
		jobs = append(jobs, unstructured.Unstructured{Object: job})
	}
	return jobs
}

// A namespace may have thousands of Jobs, and several CronJobs list them at the same time.
func TestJobsOfANamespaceAreListedInPages(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"the active one is on the last page": "Forbid", "and replaced": "Replace"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, out := &batch{
				uid: "u1", jobs: map[string]int{}, spec: map[string]any{"concurrencyPolicy": policy}, active: manyJobs(1050, 1049),
			}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, out)
			s, verdict := dueCronJob(true)
			require.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf("hash")))
			assert.LessOrEqual(t, b.largest, 25)
			if policy == "Replace" {
				assert.Equal(t, []string{"job-1049 "}, b.deleted)
				return
			}
			assert.Equal(t, []string{"concurrencyPolicy is Forbid: the run waits until no other Job is active: job-1049"}, out.Notes())
			assert.Empty(t, b.jobs)
		})
	}
}

func TestRunThatIsOnALaterPageIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := &batch{uid: "u1", jobs: map[string]int{}, spec: map[string]any{"concurrencyPolicy": "Forbid"}, active: manyJobs(250, -1)}
	b.active[249].SetName("backup-a5c3d1394d")
	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	assert.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf("hash")))
	assert.Equal(t, "backup-a5c3d1394d", s.Effects.Run.Job)
	assert.Empty(t, b.jobs)
}

// Each manifest may have a megabyte, and finalizers of others can keep any number of them.
func TestManifestsAreListedInSmallPages(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	for n := range 50 {
		job := j.Stored().DeepCopy()
		job.SetName(fmt.Sprintf("import-%d", n))
		job.SetAnnotations(map[string]string{j.Manifests.Keys.RecreatedFrom: fmt.Sprintf("old-%d", n)})
		secret, err := j.Manifests.Encode(jobrun.Manifest{Job: job, UID: fmt.Sprintf("old-%d", n), Reload: record.LastReload{Time: j.Now, Cause: record.CauseConfigChange}})
		require.NoError(t, err)
		j.API.Store(secret)
	}
	r := newLister(Jobs{}, firstFail()).resumption
	r.gather.APIReader = j.API
	r.resume(t.Context())
	assert.True(t, r.known.AreListed(), "all pages of the list were read")
	assert.LessOrEqual(t, j.API.Largest, 4)
	for n := range 50 {
		key := reloadtest.JobKey
		key.Name = fmt.Sprintf("import-%d", n)
		assert.Equal(t, j.Manifests.Name(fmt.Sprintf("old-%d", n)), r.known.First(key))
	}
}
