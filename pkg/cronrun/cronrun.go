// Package cronrun decides how a CronJob is run at once, and makes the Job of such a run.
//
// It is one of the pure packages. The Job is what `kubectl create job --from` makes, but for its name: that is derived from the
// reload, so that a reload which is repeated, by whichever leader, makes no second Job.
package cronrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Action is what becomes of a run.
type Action string

const (
	// Create makes the Job.
	Create Action = "create"
	// Replace deletes the active Jobs and makes the Job (concurrencyPolicy: Replace).
	Replace Action = "replace"
	// Wait makes no Job as long as another one is active (concurrencyPolicy: Forbid).
	Wait Action = "wait"
	// Skip makes no Job: the CronJob is suspended.
	Skip Action = "skip"
)

// CronJob reads a raw CronJob.
type CronJob struct{ workload.Object }

// Exclusive reports whether a run depends on the Jobs that are active.
func (c CronJob) Exclusive() bool {
	return !c.suspended() && (c.policy() == "Forbid" || c.policy() == "Replace")
}

// Decide returns what becomes of a run while so many Jobs are active.
func (c CronJob) Decide(active int) Action {
	switch {
	case c.suspended():
		return Skip
	case active == 0:
		return Create
	case c.policy() == "Forbid":
		return Wait
	case c.policy() == "Replace":
		return Replace
	default:
		return Create
	}
}

func (c CronJob) suspended() bool {
	suspended, _, _ := unstructured.NestedBool(c.Raw, "spec", "suspend")
	return suspended
}

func (c CronJob) policy() string {
	policy, _, _ := unstructured.NestedString(c.Raw, "spec", "concurrencyPolicy")
	return policy
}

// owner makes the CronJob the controller of a Job, which its history limits then count. It does not block the deletion of its
// owner: with the admission plugin OwnerReferencesPermissionEnforcement that needs a permission of its own.
func (c CronJob) owner() []metav1.OwnerReference {
	controller := true
	return []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: c.Name(), UID: types.UID(c.UID()), Controller: &controller,
	}}
}

// longestPrefix is how much of the name of a CronJob the names of its Jobs have; a CronJob's name has at most 52 bytes.
const longestPrefix = 52

// JobName returns the name of the Job of a reload, which is made of what distinguishes the reload from all others: the UID of the
// CronJob is one of it.
func (c CronJob) JobName(reload ...string) string {
	sum := sha256.New()
	for _, word := range append([]string{c.UID()}, reload...) {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(word), word) // it never fails
	}
	prefix := strings.TrimRight(c.Name()[:min(len(c.Name()), longestPrefix)], "-.")
	return prefix + "-" + hex.EncodeToString(sum.Sum(nil)[:5])
}

// Job returns the Job of a run. Where the pod template has a hash under an annotation, it gets the one of the run.
func (c CronJob) Job(name, hashAnnotation, hash string) *unstructured.Unstructured {
	template, _, _ := unstructured.NestedMap(c.Raw, "spec", "jobTemplate")
	job := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSONValue(template["spec"])}}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetNamespace(c.Namespace())
	job.SetName(name)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	job.SetLabels(labels)
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	job.SetAnnotations(annotations)
	job.SetOwnerReferences(c.owner())
	path := []string{"spec", "template", "metadata", "annotations", hashAnnotation}
	if _, stamped, _ := unstructured.NestedString(job.Object, path...); stamped {
		_ = unstructured.SetNestedField(job.Object, hash, path...) // the path is there
	}
	return job
}
