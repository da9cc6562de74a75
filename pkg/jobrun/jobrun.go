// Package jobrun decides whether a Job is created again, and makes the Job that replaces it.
//
// It is one of the pure packages. The pod template of a Job is immutable, so that a Job gets a new configuration only if it is
// deleted and created again under its name. Between the two, its manifest is in a Secret: see Manifest.
package jobrun

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Action is what a changed configuration means for a Job.
type Action string

const (
	// Recreate deletes the Job and creates it again.
	Recreate Action = "recreate"
	// Adopt records the new configuration only: the Job has no pods, and starts them with it.
	Adopt Action = "adopt"
	// Skip leaves the Job alone.
	Skip Action = "skip"
)

// Job reads a raw Job.
type Job struct{ workload.Object }

// Condition is what Decide depends on; workload.Object and workload.Summary have it.
type Condition interface {
	Deleting() bool
	Controlled() bool
	Finished() bool
	Suspended() bool
}

// Decide returns what a changed configuration means for a Job. A Job of a CronJob is left to it: a new one would count as a
// second run. So is every Job that has a controller.
func Decide(job Condition, rerunFinished bool) Action {
	finished := job.Finished()
	switch {
	case job.Deleting(), job.Controlled(), finished && !rerunFinished:
		return Skip
	case !finished && job.Suspended():
		return Adopt
	default:
		return Recreate
	}
}

// Finalizers are those that the end of a deletion waits for.
func (j Job) Finalizers() []string {
	finalizers, _, _ := unstructured.NestedStringSlice(j.Raw, "metadata", "finalizers")
	return finalizers
}

// Replacement returns the Job as it is to be created again: what the API server sets, and the annotations of the old stamp, are
// left out. It names the Job that it replaces.
func (j Job) Replacement(keys annotation.Keys) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(j.Raw)}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	delete(job.Object, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"selfLink",
		// With it, the API server answers "already exists" as if it had generated the name.
		"generateName",
	} {
		unstructured.RemoveNestedField(job.Object, "metadata", field)
	}
	job.SetManagedFields(slices.DeleteFunc(job.GetManagedFields(), ofSubresource))
	job.SetFinalizers(withoutDeletion(job.GetFinalizers()))
	withoutGenerated(job)
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{keys.ConfigHash, keys.ConfigRecord, keys.LastReload, keys.RecreationCanceled, "batch.kubernetes.io/job-tracking"} {
		delete(annotations, key)
	}
	annotations[keys.RecreatedFrom] = j.UID()
	job.SetAnnotations(annotations)
	for _, key := range []string{keys.ConfigHash, keys.ConfigRestart} {
		remove(job, append(slices.Clone(template), "annotations", key)...)
	}
	return job
}

// FieldsOf returns the managedFields for a Job that was created from a replacement. The API server makes the creator
// of an object the owner of its fields, so that the next server-side apply of the user would conflict with pod-reloader. The fields have their former owners then, and
// those of subresources, such as the status, the present ones. It returns nil where another writer has come meanwhile: its fields stay.
func FieldsOf(created, replacement *unstructured.Unstructured, creator string) []metav1.ManagedFieldsEntry {
	former, present := replacement.GetManagedFields(), created.GetManagedFields()
	another := func(e metav1.ManagedFieldsEntry) bool { return !ofSubresource(e) && e.Manager != creator }
	if len(former) == 0 || slices.ContainsFunc(present, another) {
		return nil
	}
	return append(former, slices.DeleteFunc(present, func(e metav1.ManagedFieldsEntry) bool { return !ofSubresource(e) })...)
}

func ofSubresource(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" }

// template is where a Job has the metadata of its pods.
var template = []string{"spec", "template", "metadata"}

// withoutDeletion leaves out the finalizers that a deletion has set.
func withoutDeletion(finalizers []string) []string {
	return slices.DeleteFunc(finalizers, func(name string) bool { return name == "foregroundDeletion" || name == "orphan" })
}

// withoutGenerated takes out the selector and the labels that the API server generates from the UID of the Job. A Job without
// labels is shown with those of its pods.
func withoutGenerated(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	for _, label := range []string{
		"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
	} {
		remove(job, "metadata", "labels", label)
		remove(job, append(slices.Clone(template), "labels", label)...)
	}
}

// remove removes an entry of a map, and the map if nothing else is in it.
func remove(job *unstructured.Unstructured, path ...string) {
	unstructured.RemoveNestedField(job.Object, path...)
	parent := path[:len(path)-1]
	if left, ok, _ := unstructured.NestedMap(job.Object, parent...); ok && len(left) == 0 {
		unstructured.RemoveNestedField(job.Object, parent...)
	}
}

// Stamp stamps a Job that is created again. If the webhook answers, its own stamp replaces this one.
func Stamp(job *unstructured.Unstructured, keys annotation.Keys, managed stamp.Managed) error {
	if hash, ok := managed[stamp.Hash]; ok {
		err := unstructured.SetNestedField(job.Object, hash, append(slices.Clone(template), "annotations", keys.ConfigHash)...)
		if err != nil {
			return err
		}
	}
	if rec, ok := managed[stamp.Record]; ok {
		return unstructured.SetNestedField(job.Object, rec, "metadata", "annotations", keys.ConfigRecord)
	}
	return nil
}
