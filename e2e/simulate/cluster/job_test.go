package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    metadata: {annotations: {hash: a}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "job:1"}]}
`

const cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  jobTemplate:
    metadata: {labels: {app: nightly}}
    spec:
      template:
        metadata: {annotations: {hash: a}}
        spec: {restartPolicy: Never, containers: [{name: main, image: "job:1"}]}
`

func TestJobRunsOnePodToCompletion(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		once := k.apply(job)
		k.settle()
		pods := k.list(world.Pods)
		require.Len(t, pods, 1)
		assert.Equal(t, "a", pods[0].GetAnnotations()["hash"])
		assert.Equal(t, "once", pods[0].GetLabels()["batch.kubernetes.io/job-name"])
		assert.Equal(t, "CompletionsReached", reason(k, once, "Complete"))
		k.delete(pod(pods[0].GetName()))
		k.settle()
		assert.Empty(t, k.pods(), "a finished Job starts nothing")
	})
}

func TestSuspendedJobStartsWhenResumed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		once := k.apply(job + "  suspend: true\n")
		k.settle()
		assert.Empty(t, k.pods())
		k.set(once, false, "spec", "suspend")
		k.settle()
		assert.Len(t, k.pods(), 1)
	})
}

func TestRunCronJobCreatesAJobFromTheTemplate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		nightly := k.apply(cronJob)
		k.settle()
		created := map[string]bool{}
		for range 5 {
			key, ok := k.c.RunCronJob(nightly)
			require.True(t, ok, "the CronJob is run")
			created[key.Name] = true
			k.sleep(time.Second)
			k.settle()
		}
		assert.Len(t, created, 5)
		jobs := k.list(world.Jobs)
		assert.Len(t, jobs, 3, "the history limit")
		assert.Len(t, k.pods(), 3)
		assert.Equal(t, "nightly", jobs[0].GetLabels()["app"])
		k.set(nightly, true, "spec", "suspend")
		_, ok := k.c.RunCronJob(nightly)
		assert.False(t, ok, "a suspended CronJob is not run")
		k.delete(nightly)
		k.settle()
		assert.Empty(t, k.list(world.Jobs))
		assert.Empty(t, k.pods())
	})
}

func TestScheduledRunHonoursTheConcurrencyPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct {
		runs   bool
		active int
	}{"Allow": {true, 2}, "Forbid": {false, 1}, "Replace": {true, 1}} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				nightly := k.apply(strings.Replace(cronJob, "{hash: a}", `{example.com/endless: "true"}`, 1))
				k.set(nightly, policy, "spec", "concurrencyPolicy")
				k.settle()
				_, ok := k.c.RunCronJob(nightly)
				require.True(t, ok, "the first run has nothing to wait for")
				k.settle()
				_, ok = k.c.RunCronJob(nightly)
				assert.Equal(t, want.runs, ok)
				k.settle()
				assert.Len(t, k.pods(), want.active)
				status, _, _ := unstructured.NestedSlice(k.get(nightly), "status", "active")
				assert.Len(t, status, want.active)
			})
		})
	}
}

func TestScheduleDoesNotCountJobsOfOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		nightly := k.apply(cronJob)
		k.set(nightly, "Forbid", "spec", "concurrencyPolicy")
		once := k.apply(strings.Replace(job, "{hash: a}", `{example.com/endless: "true"}`, 1))
		k.set(once, []any{map[string]any{
			"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": string(world.Meta(k.get(nightly)).GetUID()), "controller": true,
		}}, "metadata", "ownerReferences")
		k.settle()
		assert.NotContains(t, k.get(nightly)["status"], "active")
		_, ok := k.c.RunCronJob(nightly)
		assert.True(t, ok, "the Job of a user is no run of the schedule")
	})
}
