package workloadstate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// item carries a workload through the reflector, with as much metadata as that looks at.
type item struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	kept *workload.Kept
}

// DeepCopyObject is for the interface; the workload is immutable.
func (i *item) DeepCopyObject() runtime.Object {
	c := *i
	return &c
}

// items is a list of them.
type items struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*item
}

// DeepCopyObject is for the interface; the workloads are immutable.
func (i *items) DeepCopyObject() runtime.Object {
	c := *i
	return &c
}
