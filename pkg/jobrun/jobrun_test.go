package jobrun_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const prefix = annotation.DefaultPrefix

// jobOf reads a Job with fields in its metadata, spec and status.
func jobOf(metadata, spec, status map[string]any) jobrun.Job {
	raw := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "import", "namespace": "shop", "uid": "u1"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never"}}},
	}
	maps.Copy(raw["metadata"].(map[string]any), metadata)
	maps.Copy(raw["spec"].(map[string]any), spec)
	if status != nil {
		raw["status"] = status
	}
	kind := workload.Job()
	return jobrun.Job{Object: workload.Object{Kind: kind, Raw: raw}}
}

func condition(kind, status string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	owner := map[string]any{"ownerReferences": []any{map[string]any{"kind": "CronJob", "controller": true}}}
	for name, tc := range map[string]struct {
		job   jobrun.Job
		rerun bool
		want  jobrun.Action
	}{
		"the Job runs":                  {job: jobOf(nil, nil, nil), want: jobrun.Recreate},
		"the Job is about to fail":      {job: jobOf(nil, nil, condition("FailureTarget", "True")), want: jobrun.Recreate},
		"the Job has not failed":        {job: jobOf(nil, nil, condition("Failed", "False")), want: jobrun.Recreate},
		"the Job is complete":           {job: jobOf(nil, nil, condition("Complete", "True")), want: jobrun.Skip},
		"the Job has failed":            {job: jobOf(nil, nil, condition("Failed", "True")), want: jobrun.Skip},
		"finished ones run again":       {job: jobOf(nil, nil, condition("Complete", "True")), rerun: true, want: jobrun.Recreate},
		"a CronJob's":                   {job: jobOf(owner, nil, nil), rerun: true, want: jobrun.Skip},
		"owned, but not controlled":     {job: jobOf(map[string]any{"ownerReferences": []any{map[string]any{"kind": "App"}}}, nil, nil), want: jobrun.Recreate},
		"the Job is being deleted":      {job: jobOf(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}, nil, nil), want: jobrun.Skip},
		"suspended":                     {job: jobOf(nil, map[string]any{"suspend": true}, nil), want: jobrun.Adopt},
		"suspended when it had ended":   {job: jobOf(nil, map[string]any{"suspend": true}, condition("Failed", "True")), want: jobrun.Skip},
		"suspended, finished run again": {job: jobOf(nil, map[string]any{"suspend": true}, nil), rerun: true, want: jobrun.Adopt},
	} {
		assert.Equal(t, tc.want, jobrun.Decide(tc.job, tc.rerun), name)
	}
}

func TestReplacementLeavesOutWhatTheAPIServerSets(t *testing.T) {
	t.Parallel()
	generated := map[string]any{
		"controller-uid": "u1", "job-name": "import", "batch.kubernetes.io/controller-uid": "u1", "batch.kubernetes.io/job-name": "import",
	}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(generated)
		maps.Copy(all, more)
		return all
	}
	j := jobOf(map[string]any{
		"generateName": "imp-", "resourceVersion": "7", "generation": int64(2), "creationTimestamp": "2026-01-01T00:00:00Z", "selfLink": "/x",
		"managedFields":   []any{map[string]any{"manager": "kubectl"}, map[string]any{"manager": "controller", "subresource": "status"}},
		"finalizers":      []any{"example.org/keep", "foregroundDeletion", "orphan"},
		"labels":          with(map[string]any{"app": "import"}),
		"ownerReferences": []any{map[string]any{"kind": "App", "uid": "a1"}},
		"annotations": map[string]any{
			prefix + "config-record": "old", prefix + "last-reload": "old", prefix + "config-hash": "dummy", prefix + "recreated-from": "u0", prefix + "recreation-canceled": "s0",
			"batch.kubernetes.io/job-tracking": "", "reloader.stakater.com/auto": "true",
		},
	}, map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"batch.kubernetes.io/controller-uid": "u1"}}, "fieldOfTheFuture": int64(1),
		"ttlSecondsAfterFinished": int64(60), "suspend": false,
		"template": map[string]any{
			"metadata": map[string]any{"labels": with(map[string]any{"app": "import"}), "annotations": map[string]any{
				prefix + "config-hash": "old", prefix + "config-restart": "1", "team": "a",
			}},
			"spec": map[string]any{"restartPolicy": "Never"},
		},
	}, map[string]any{"active": int64(1)})
	before := runtime.DeepCopyJSON(j.Raw)
	assert.Equal(t, map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"managedFields": []any{map[string]any{"manager": "kubectl"}},
			"name":          "import", "namespace": "shop", "finalizers": []any{"example.org/keep"}, "labels": map[string]any{"app": "import"},
			"ownerReferences": []any{map[string]any{"kind": "App", "uid": "a1"}},
			"annotations":     map[string]any{"reloader.stakater.com/auto": "true", prefix + "recreated-from": "u1"},
		},
		"spec": map[string]any{
			"fieldOfTheFuture": int64(1), "ttlSecondsAfterFinished": int64(60), "suspend": false,
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "import"}, "annotations": map[string]any{"team": "a"}},
				"spec":     map[string]any{"restartPolicy": "Never"},
			},
		},
	}, j.Replacement(annotation.DefaultKeys()).Object)
	assert.Equal(t, before, j.Raw, "the Job stays as it is")
}

// The API server shows a Job without labels with those of its pods, the generated ones included.
func TestReplacementOfAJobWithoutLabels(t *testing.T) {
	t.Parallel()
	generated := map[string]any{"controller-uid": "u1", "batch.kubernetes.io/job-name": "import"}
	spec := map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": maps.Clone(generated)}}}
	job := jobOf(map[string]any{"labels": maps.Clone(generated)}, spec, nil).Replacement(annotation.DefaultKeys())
	assert.Empty(t, job.GetLabels())
	assert.NotContains(t, job.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"], "labels")
	assert.Equal(t, "u1", job.GetAnnotations()[prefix+"recreated-from"])
}

func TestReplacementKeepsASelectorOfTheUser(t *testing.T) {
	t.Parallel()
	labels := map[string]any{"job-name": "mine"}
	selector := map[string]any{"matchLabels": labels}
	job := jobOf(map[string]any{"labels": labels}, map[string]any{
		"manualSelector": true, "selector": selector, "template": map[string]any{"metadata": map[string]any{"labels": labels}},
	}, nil).Replacement(annotation.DefaultKeys())
	spec := job.Object["spec"].(map[string]any)
	assert.Equal(t, selector, spec["selector"])
	assert.Equal(t, map[string]string{"job-name": "mine"}, job.GetLabels())
	assert.Equal(t, map[string]any{"labels": labels}, spec["template"].(map[string]any)["metadata"])
}

func TestFieldsOfANewJobGoBackToTheirOwners(t *testing.T) {
	t.Parallel()
	user := metav1.ManagedFieldsEntry{Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply}
	creator := metav1.ManagedFieldsEntry{Manager: "pod-reloader", Operation: metav1.ManagedFieldsOperationUpdate}
	status := metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Subresource: "status"}
	for name, tc := range map[string]struct{ former, present, want []metav1.ManagedFieldsEntry }{
		"the creator has all of them":         {former: []metav1.ManagedFieldsEntry{user}, present: []metav1.ManagedFieldsEntry{creator, status}, want: []metav1.ManagedFieldsEntry{user, status}},
		"the former owners are not known":     {present: []metav1.ManagedFieldsEntry{creator}},
		"the user has applied the new Job":    {former: []metav1.ManagedFieldsEntry{user}, present: []metav1.ManagedFieldsEntry{creator, user}},
		"the API server shows no owners":      {former: []metav1.ManagedFieldsEntry{user}, want: []metav1.ManagedFieldsEntry{user}},
		"another one has written a new field": {former: []metav1.ManagedFieldsEntry{user}, present: []metav1.ManagedFieldsEntry{creator, {Manager: "kubectl-label"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replacement, created := jobOf(nil, nil, nil).Replacement(annotation.DefaultKeys()), &unstructured.Unstructured{Object: map[string]any{}}
			replacement.SetManagedFields(tc.former)
			created.SetManagedFields(tc.present)
			assert.Equal(t, tc.want, jobrun.FieldsOf(created, replacement, "pod-reloader"))
		})
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	job := jobOf(nil, nil, nil).Replacement(keys)
	require.NoError(t, jobrun.Stamp(job, keys, stamp.Managed{stamp.Hash: "h", stamp.Record: "r"}))
	o := workload.Object{Kind: jobOf(nil, nil, nil).Kind, Raw: job.Object}
	assert.Equal(t, map[string]string{keys.ConfigHash: "h"}, o.TemplateAnnotations())
	assert.Equal(t, "r", o.Annotations()[keys.ConfigRecord])

	bare := jobOf(nil, nil, nil).Replacement(keys)
	require.NoError(t, jobrun.Stamp(bare, keys, stamp.Managed{}))
	assert.Equal(t, jobOf(nil, nil, nil).Replacement(keys), bare, "what has no stamp gets none")
}

func TestNamesOfWhatADeletionWaitsFor(t *testing.T) {
	t.Parallel()
	j := jobOf(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.org/keep"}}, nil, nil)
	assert.True(t, j.Deleting(), "it has a time of deletion")
	assert.Equal(t, []string{"example.org/keep"}, j.Finalizers())
	assert.False(t, jobOf(nil, nil, nil).Deleting(), "it has no time of deletion")
}
