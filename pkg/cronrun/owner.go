package cronrun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// owner makes the CronJob the controller of a Job, which its history limits then count. It does not block the deletion of its
// owner: with the admission plugin OwnerReferencesPermissionEnforcement that needs a permission of its own.
func (c CronJob) owner() []metav1.OwnerReference {
	controller := true
	return []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: c.Name(), UID: types.UID(c.UID()), Controller: &controller,
	}}
}

func ownedBy(uid string) func(metav1.OwnerReference) bool {
	return func(owner metav1.OwnerReference) bool { return string(owner.UID) == uid }
}

// finished reports whether a Job is complete or has failed.
func finished(job unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return true
		}
	}
	return false
}
