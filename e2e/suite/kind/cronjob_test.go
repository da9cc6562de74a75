package kind_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// scheduled creates a CronJob that depends on configmap/app, with further fields in its spec.
func scheduled(s *fixture.Fixture, name, annotation string, spec map[string]any) observe.Workload {
	s.Helper()
	annotations := map[string]string{annotation: "true"}
	if annotation == auto {
		annotations[fixture.ConfigMaps] = ""
	}
	manifest := s.Manifest("CronJob", name, fixture.Uses{ConfigMaps: []string{"app"}, Annotations: annotations})
	for field, value := range spec {
		manifest.Object["spec"].(map[string]any)[field] = value
	}
	s.CreatePromptly(manifest)
	w := observe.Workload{Kind: "CronJob", Namespace: s.Namespace, Name: name}
	s.AwaitAdopted(w, "configmap/app")
	return w
}

// jobs are those that a CronJob owns.
func jobs(s *fixture.Fixture, of observe.Workload) []batchv1.Job {
	s.Helper()
	all := &batchv1.JobList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	var owned []batchv1.Job
	for _, job := range all.Items {
		if owner := metav1.GetControllerOf(&job); owner != nil && owner.Kind == "CronJob" && owner.Name == of.Name {
			owned = append(owned, job)
		}
	}
	return owned
}

func TestCronJobRunsAtOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := scheduled(s, "backup", auto, map[string]any{"successfulJobsHistoryLimit": int64(9)})
	sap := scheduled(s, "sap", "example.org/none", nil)
	suspended := scheduled(s, "suspended", auto, map[string]any{"suspend": true})

	for n, content := range []string{"2", "1", "2"} {
		s.SetConfigMap("app", "key", content)
		for _, each := range []observe.Workload{w, sap, suspended} {
			s.AwaitChanges(each, n+1, "the template of the next run is stamped")
		}
		s.Settled()
		made := jobs(s, w)
		require.Len(t, made, n+1, "each reload is one run, also when a content comes back")
		for _, job := range made {
			assert.Equal(t, "manual", job.Annotations["cronjob.kubernetes.io/instantiate"])
			s.AwaitEvent(w, "Reloaded", "configmap/app modified", "run at once as Job "+job.Name)
		}
	}
	newest := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	hashes := map[string]int{}
	for _, job := range jobs(s, w) {
		hashes[job.Spec.Template.Annotations[fixture.ConfigHash]]++
	}
	assert.Equal(t, 2, hashes[newest], "a run has the hash of its configuration: %v", hashes)
	assert.Empty(t, jobs(s, sap), "SAP's annotations stamp the next run only")
	assert.Empty(t, jobs(s, suspended), "a suspended CronJob makes no Job")
	s.AwaitEvent(suspended, "Reloaded", "next scheduled run")
}

// active makes a Job of a CronJob that does not finish.
func active(s *fixture.Fixture, of observe.Workload) types.UID {
	s.Helper()
	cron, job := s.Get(of), &batchv1.Job{}
	suspend, controller := true, true
	job.Namespace, job.Name, job.Spec.Suspend = s.Namespace, of.Name+"-active", &suspend
	job.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: of.Name, UID: cron.GetUID(), Controller: &controller,
	}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}},
	}
	require.NoError(s, s.Create(s.Context(), job))
	return job.UID
}

func TestCronJobHonoursItsConcurrencyPolicy(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	policy := func(name string) map[string]any { return map[string]any{"concurrencyPolicy": name} }
	forbid, replace, allow := scheduled(s, "forbid", auto, policy("Forbid")), scheduled(s, "replace", auto, policy("Replace")), scheduled(s, "allow", auto, policy("Allow"))
	uids := map[string]types.UID{}
	for _, w := range []observe.Workload{forbid, replace, allow} {
		uids[w.Name] = active(s, w)
	}
	s.Await("the next second, since the time of a creation has no fraction", func() error {
		if job := jobs(s, allow)[0]; !time.Now().Truncate(time.Second).After(job.CreationTimestamp.Time) {
			return errors.New("the Job is from this second")
		}
		return nil
	})

	s.SetConfigMap("app", "key", "2")
	for _, w := range []observe.Workload{forbid, replace, allow} {
		s.AwaitChanges(w, 1, "it is reloaded, whatever its run waits for")
	}
	s.AwaitEvent(forbid, "RunPostponed", "forbid-active")
	explained := func(w observe.Workload) string {
		s.Helper()
		output, err := shared.Why(t.Context(), "cronjob/"+w.Name, "-n", s.Namespace)
		require.NoError(t, err)
		return output
	}
	const waits = "The run for the last reload waits until no other Job is active (concurrencyPolicy: Forbid): forbid-active."
	assert.Contains(t, explained(forbid), waits)
	assert.NotContains(t, explained(allow), "The run for the last reload")
	assert.Len(t, jobs(s, forbid), 1, "not while another one is active")
	assert.Len(t, jobs(s, allow), 2, "both may be active")
	s.Await("the active Job to be replaced", func() error {
		left := jobs(s, replace)
		if len(left) != 1 || left[0].UID == uids["replace"] {
			return fmt.Errorf("there are %d Jobs", len(left))
		}
		return nil
	})
	require.NoError(t, s.Delete(s.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "forbid-active"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.Await("the run when no Job is active", func() error { return ran(s, forbid) })
	s.RequireChanges(forbid, 1, "it is one reload")
	assert.NotContains(t, explained(forbid), "The run for the last reload", "it was made")
}

// ran reports whether the only Job of a CronJob is one that the program has made with the stamped template.
func ran(s *fixture.Fixture, of observe.Workload) error {
	s.Helper()
	want := fixture.TemplateAnnotations(s.Get(of))[fixture.ConfigHash]
	if made := jobs(s, of); len(made) != 1 || made[0].Spec.Template.Annotations[fixture.ConfigHash] != want {
		return fmt.Errorf("there are %d Jobs", len(made))
	}
	return nil
}

// A release stamps a change before the program has handled it: while the run waits for an active Job, or before the change has settled.
func TestCronJobRunsAfterARelease(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	forbid := scheduled(s, "forbid", auto, map[string]any{"concurrencyPolicy": "Forbid"})
	prompt := scheduled(s, "prompt", auto, nil)
	active(s, forbid)
	release := func(w observe.Workload, version string) {
		s.Helper()
		s.MergeWorkload(w, `{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"labels":{"release":"`+version+`"}}}}}}}`)
	}

	s.SetConfigMap("app", "key", "2")
	release(prompt, "2")
	s.AwaitEvent(forbid, "RunPostponed", "forbid-active")
	release(forbid, "2")
	for _, w := range []observe.Workload{forbid, prompt} {
		s.AwaitEvent(w, "Reloaded", "configmap/app modified")
	}
	s.Settled()
	assert.Len(t, jobs(s, prompt), 1, "each change is one run")
	assert.Len(t, jobs(s, forbid), 1, "the run goes on waiting")
	require.NoError(t, s.Delete(s.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "forbid-active"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.Await("the run after the release", func() error {
		if made := jobs(s, forbid); len(made) != 1 || made[0].Name == "forbid-active" {
			return fmt.Errorf("there are %d Jobs", len(made))
		}
		return nil
	})

	release(prompt, "3")
	s.Settled()
	assert.Len(t, jobs(s, prompt), 1, "a release without a change runs nothing")
	for _, w := range []observe.Workload{forbid, prompt} {
		made, want := jobs(s, w)[0], fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
		assert.Equal(t, want, made.Spec.Template.Annotations[fixture.ConfigHash], w.Name)
	}
}

// The schedule starts a Job with the stamped template while the run waits for an active one, which the controller does not know of.
func TestScheduledJobIsTheRunThatWaits(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := scheduled(s, "forbid", auto, map[string]any{"concurrencyPolicy": "Forbid"})
	s.MergeWorkload(w, `{"spec":{"jobTemplate":{"spec":{"parallelism":0}}}}`) // its Jobs have no pods to wait for
	active(s, w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "it is stamped")
	s.AwaitEvent(w, "RunPostponed", "forbid-active")

	s.MergeWorkload(w, `{"spec":{"schedule":"* * * * *"}}`)
	started := awaitStarted(s, w)
	s.MergeWorkload(w, `{"spec":{"schedule":"0 0 1 1 *"}}`)
	want := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.Equal(t, want, started.Spec.Template.Annotations[fixture.ConfigHash])
	s.Await("the Job to count as the run", func() error {
		var errs []error
		for _, replica := range shared.Replicas() {
			err := replica.Logged("a Job of the CronJob has started with its new configuration", s.Namespace, started.Name)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	finish(s, workloadOf(s, started.Name))
	require.NoError(t, s.Delete(s.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "forbid-active"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.Settled()
	assert.Len(t, jobs(s, w), 1, "no other one is made")

	s.SetConfigMap("app", "key", "3")
	s.AwaitEvent(w, "Reloaded", "run at once as Job")
	assert.Len(t, jobs(s, w), 2, "the next change is a run of its own")
}

// awaitStarted waits for a Job that the schedule starts.
func awaitStarted(s *fixture.Fixture, of observe.Workload) (started batchv1.Job) {
	s.Helper()
	s.Await("the schedule to start a Job", func() error {
		for _, job := range jobs(s, of) {
			if job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != "" {
				started = job
				return nil
			}
		}
		return errors.New("there is none")
	})
	return started
}
