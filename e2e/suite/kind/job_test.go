package kind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// started creates a Job that depends on configmap/app and does not end by itself, with further fields in its spec.
func started(s *fixture.Fixture, name string, annotations map[string]string, spec map[string]any) (observe.Workload, types.UID) {
	s.Helper()
	manifest := jobManifest(s, name, annotations, spec)
	s.CreatePromptly(manifest)
	return workloadOf(s, name), manifest.GetUID()
}

// workloadOf names a Job.
func workloadOf(s *fixture.Fixture, name string) observe.Workload {
	return observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: name}
}

// jobManifest is the manifest of started.
func jobManifest(s *fixture.Fixture, name string, annotations map[string]string, spec map[string]any) *unstructured.Unstructured {
	return manifestOn(s, "app", name, annotations, spec)
}

// manifestOn is jobManifest with the name of the ConfigMap.
func manifestOn(s *fixture.Fixture, configMap, name string, annotations map[string]string, spec map[string]any) *unstructured.Unstructured {
	manifest := s.Manifest("Job", name, fixture.Uses{ConfigMaps: []string{configMap}, Annotations: annotations})
	fields := manifest.Object["spec"].(map[string]any)
	pods := fields["template"].(map[string]any)["spec"].(map[string]any)
	pods["nodeSelector"] = map[string]any{"example.org/none": "true"} // its pods never run, so that it does not finish
	for field, value := range spec {
		fields[field] = value
	}
	return manifest
}

// automatic are the annotations of Reloader alone.
func automatic() map[string]string { return map[string]string{fixture.ConfigMaps: "", auto: "true"} }

// settledJobs is [fixture.Fixture.Settled], and the loop is through with everything so far that is about Jobs: one that is made and changed
// afterwards is created again. Other workers may still be busy: the time that they get is a second one.
func settledJobs(s *fixture.Fixture) {
	s.Helper()
	s.Settled()
	for range 2 {
		name := "canary-" + string(uuid.NewUUID())
		s.ConfigMap(name, fixture.Data{"key": "1"})
		manifest := manifestOn(s, name, name, automatic(), nil)
		s.CreatePromptly(manifest)
		s.SetConfigMap(name, "key", "2")
		awaitReplaced(s, workloadOf(s, name), manifest.GetUID())
	}
	awaitNoManifest(s)
}

func jobOf(s *fixture.Fixture, w observe.Workload) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, s.Client.Get(s.Context(), types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, job)
}

// awaitReplaced waits until there is a Job that replaces the one with a UID.
func awaitReplaced(s *fixture.Fixture, w observe.Workload, uid types.UID) *batchv1.Job {
	s.Helper()
	s.AwaitRecreated(w, uid)
	next, err := jobOf(s, w)
	require.NoError(s, err)
	return next
}

// manifests are the Secrets of Jobs of a namespace that are to be created again.
func manifests(s *fixture.Fixture) []corev1.Secret {
	s.Helper()
	all := &corev1.SecretList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace("pod-reloader"), client.HasLabels{"pod-reloader.io/recreation"}))
	return slices.DeleteFunc(all.Items, func(secret corev1.Secret) bool {
		job := &batchv1.Job{}
		require.NoError(s, json.Unmarshal(secret.Data["job.json"], job))
		return job.Namespace != s.Namespace
	})
}

// awaitNoManifest waits for the end of what is done after a Job is created again.
func awaitNoManifest(s *fixture.Fixture) {
	s.Helper()
	s.Await("the Secrets to be deleted", func() error {
		if left := manifests(s); len(left) > 0 {
			return fmt.Errorf("there is %s", left[0].Name)
		}
		return nil
	})
}

func TestJobIsCreatedAgainOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, uid := started(s, "import", automatic(), map[string]any{"backoffLimit": int64(2), "ttlSecondsAfterFinished": int64(600)})
	first, err := jobOf(s, w)
	require.NoError(t, err)
	require.NotEmpty(t, first.Spec.Template.Annotations[fixture.ConfigHash])
	sap, sapUID := started(s, "sap", nil, nil)

	s.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"touched":"true"}}}`)
	settledJobs(s)
	same, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, uid, same.UID, "its content is the same")

	s.SetConfigMap("app", "key", "2")
	next := awaitReplaced(s, w, uid)
	s.AwaitEvent(w, "Reloaded", "created again", "configmap/app modified")
	awaitNoManifest(s)
	settledJobs(s)
	again, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, next.UID, again.UID, "once")
	assert.NotEqual(t, first.Spec.Template.Annotations[fixture.ConfigHash], again.Spec.Template.Annotations[fixture.ConfigHash])
	assert.Contains(t, again.Annotations[fixture.ConfigRecord], "configmap/app=", "stamped by the webhook")
	assert.Equal(t, string(uid), again.Annotations["pod-reloader.cs.sap.com/recreated-from"])
	assert.Equal(t, first.Spec.BackoffLimit, again.Spec.BackoffLimit)
	assert.Equal(t, first.Spec.TTLSecondsAfterFinished, again.Spec.TTLSecondsAfterFinished)
	assert.Equal(t, string(again.UID), again.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel], "its selector is its own")
	s.Await("the pods of the old Job to be deleted", func() error {
		pods := &corev1.PodList{}
		require.NoError(t, s.List(s.Context(), pods, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(uid)}))
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				return errors.New(pod.Name + " is left")
			}
		}
		return nil
	})
	left, err := jobOf(s, sap)
	require.NoError(t, err)
	assert.Equal(t, sapUID, left.UID, "SAP's annotations stamp a Job at its creation only")

	s.SetConfigMap("app", "key", "3")
	awaitReplaced(s, w, again.UID)
	awaitNoManifest(s)
}

// finish writes the status that the Job controller writes.
func finish(s *fixture.Fixture, w observe.Workload) {
	s.Helper()
	s.Await("the Job to have a start time", func() error {
		job, err := jobOf(s, w)
		if err != nil || job.Status.StartTime == nil {
			return errors.Join(err, errors.New("it has none"))
		}
		now := metav1.Now()
		for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now, Reason: "Test",
			})
		}
		zero := int32(0)
		job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, &zero, &zero
		job.Status.UncountedTerminatedPods = nil
		return s.Status().Update(s.Context(), job)
	})
}

func TestJobsThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	control, controlUID := started(s, "control", automatic(), nil)
	uids := map[observe.Workload]types.UID{}
	add := func(w observe.Workload, uid types.UID) observe.Workload {
		uids[w] = uid
		return w
	}
	// A Job without pods to wait for.
	done := add(started(s, "done", automatic(), map[string]any{"parallelism": int64(0)}))
	finish(s, done)
	suspended := add(started(s, "suspended", automatic(), map[string]any{"suspend": true}))
	cron := scheduled(s, "backup", auto, map[string]any{"suspend": true})
	owned, controller := &batchv1.Job{}, true
	owned.Namespace, owned.Name, owned.Annotations = s.Namespace, "owned", automatic()
	owned.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"example.org/none": "true"},
		Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1", EnvFrom: []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}},
		}}}},
	}
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: s.Get(cron).GetUID(), Controller: &controller,
	}}
	require.NoError(t, s.Create(t.Context(), owned))
	uids[observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: "owned"}] = owned.UID

	s.SetConfigMap("app", "key", "2")
	awaitReplaced(s, control, controlUID)
	awaitNoManifest(s)
	settledJobs(s)
	for w, uid := range uids {
		job, err := jobOf(s, w)
		require.NoError(t, err)
		assert.Equal(t, uid, job.UID, "%s is left alone", w.Name)
	}

	s.Merge(&batchv1.Job{}, suspended.Name, `{"spec":{"suspend":false}}`)
	settledJobs(s)
	job, err := jobOf(s, suspended)
	require.NoError(t, err)
	assert.Equal(t, uids[suspended], job.UID, "its pods start with what is there now")
	s.SetConfigMap("app", "key", "3")
	awaitReplaced(s, suspended, uids[suspended])
	awaitNoManifest(s)
}

// The record of a suspended Job still has an object that an expression has selected and that is gone.
func TestSuspendedJobKeepsUpWithWhatAnExpressionSelects(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.ConfigMap("app-x", fixture.Data{"key": "1"})
	annotations := map[string]string{fixture.ConfigMaps: "", "configmap.reloader.stakater.com/reload": "app.*"}
	w, uid := started(s, "import", annotations, map[string]any{"suspend": true})
	first, err := jobOf(s, w)
	require.NoError(t, err)
	require.Contains(t, first.Annotations[fixture.ConfigRecord], "configmap/app-x=")

	require.NoError(t, s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "app-x"}}))
	settledJobs(s)
	s.SetConfigMap("app", "key", "2")
	s.Await("the Job to be adopted", func() error {
		job, err := jobOf(s, w)
		if err == nil && job.Annotations[fixture.ConfigRecord] == first.Annotations[fixture.ConfigRecord] {
			return errors.New("its record is the old one")
		}
		return err
	})
	s.Merge(&batchv1.Job{}, w.Name, `{"spec":{"suspend":false}}`)
	settledJobs(s)
	job, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, uid, job.UID, "its pods start with what is there now")
	s.SetConfigMap("app", "key", "3")
	awaitReplaced(s, w, uid)
	awaitNoManifest(s)
}

// What refuses the new Job keeps the old one.
func TestJobIsNotDeletedWhileItWouldBeRefused(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, uid := started(s, "import", automatic(), nil)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")},
	}}
	require.NoError(t, s.Create(t.Context(), quota))
	s.Await("the quota to be counted", func() error {
		require.NoError(t, s.Client.Get(s.Context(), client.ObjectKeyFromObject(quota), quota))
		if used := quota.Status.Used["count/jobs.batch"]; used.Value() != 1 {
			return fmt.Errorf("%s are used", used.String())
		}
		return nil
	})
	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(w, "RecreationFailed", "dry run of the new job", "exceeded quota")
	job, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, uid, job.UID)
	assert.Empty(t, manifests(s))

	require.NoError(t, s.Delete(t.Context(), quota))
	s.SetConfigMap("app", "key", "3") // a change is tried at once
	awaitReplaced(s, w, uid)
	awaitNoManifest(s)
}

// The Job is deleted and has a finalizer: whichever replica leads when it is gone creates the new one. No other test runs while the
// replicas are killed.
func TestDeletedJobSurvivesRestarts(t *testing.T) {
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, uid := started(s, "import", automatic(), nil)
	mine, myUID := started(s, "mine", automatic(), nil)
	for _, each := range []observe.Workload{w, mine} {
		s.Merge(&batchv1.Job{}, each.Name, `{"metadata":{"finalizers":["example.org/keep"]}}`)
	}
	settledJobs(s)
	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(w, "RecreationPostponed", "example.org/keep")
	s.AwaitEvent(mine, "RecreationPostponed", "example.org/keep")
	require.Len(t, manifests(s), 2)

	for _, replica := range shared.Replicas() {
		replica.Kill()
	}
	s.Merge(&batchv1.Job{}, w.Name, `{"metadata":{"finalizers":null}}`)
	next := awaitReplaced(s, w, uid)
	s.AwaitEvent(w, "Reloaded", "created again", "configmap/app modified")
	assert.Equal(t, []string{"example.org/keep"}, next.Finalizers, "a finalizer that the Job had stays")

	for _, replica := range shared.Replicas() {
		replica.Kill()
	}
	s.Merge(&batchv1.Job{}, mine.Name, `{"metadata":{"finalizers":null}}`)
	awaitReplaced(s, mine, myUID)
	awaitNoManifest(s)
	settledJobs(s)
	for _, each := range []observe.Workload{w, mine} {
		s.Merge(&batchv1.Job{}, each.Name, `{"metadata":{"finalizers":null}}`)
	}
}

// Without the permissions, a Job whose configuration changed gets an Event, and nothing else. No other test runs while they are taken
// away.
func TestJobWithoutThePermissions(t *testing.T) {
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, uid := started(s, "import", automatic(), nil)
	suspended, suspendedUID := started(s, "suspended", automatic(), map[string]any{"suspend": true})
	settledJobs(s)
	role := &rbacv1.ClusterRole{}
	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
	granted := slices.Clone(role.Rules)
	grant := func(rules []rbacv1.PolicyRule, want bool) {
		role.Rules = rules
		require.NoError(t, s.Update(s.Patiently(), role))
		s.Await("the API server to know the permissions", func() error {
			identity := shared.Identity()
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: identity.User, Groups: identity.Groups,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.Namespace, Verb: "get", Group: "batch", Resource: "jobs"},
			}}
			if err := s.Create(s.Context(), review); err != nil {
				return err
			}
			if review.Status.Allowed != want {
				return fmt.Errorf("allowed: %t", review.Status.Allowed)
			}
			return nil
		})
	}
	t.Cleanup(func() {
		role.Rules = granted
		assert.NoError(t, s.Update(context.WithoutCancel(t.Context()), role), "the tests that follow need the permissions")
	})
	grant(slices.DeleteFunc(slices.Clone(granted), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "jobs") && slices.Contains(rule.Verbs, "patch")
	}), false)

	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(w, "RecreationForbidden", "recreate-jobs")
	job, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, uid, job.UID)

	grant(granted, true)
	s.SetConfigMap("app", "key", "3") // a change is tried at once
	awaitReplaced(s, w, uid)
	awaitNoManifest(s)

	s.Merge(&batchv1.Job{}, suspended.Name, `{"spec":{"suspend":false}}`)
	settledJobs(s)
	s.Reported()
	job, err = jobOf(s, suspended)
	require.NoError(t, err)
	assert.Equal(t, suspendedUID, job.UID, "its pods start with what is there now")
	for _, e := range s.Events(suspended) {
		assert.NotEqual(t, "RecreationForbidden", e.Reason, e.Note)
	}
}
