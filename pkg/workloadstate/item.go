package workloadstate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

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

// sink takes what the reflector learns into the Watch. Its methods run on the reflector's goroutine.
type sink struct {
	*follower
}

var _ cache.ReflectorStore = (*sink)(nil)

// Add takes in a new workload.
func (s *sink) Add(object any) error { return s.put(object) }

// Update takes in a changed workload.
func (s *sink) Update(object any) error { return s.put(object) }

func (s *sink) put(object any) error {
	i, err := itemOf(object)
	if err != nil {
		return err
	}
	s.watch.put(i.kept)
	return nil
}

// Delete takes in that a workload is gone.
func (s *sink) Delete(object any) error {
	i, err := itemOf(object)
	if err != nil {
		return err
	}
	s.watch.remove(i.Namespace, i.Name)
	return nil
}

// Replace takes in a listing: what is not in it is gone.
func (s *sink) Replace(objects []any, _ string) error {
	listed := make([]*workload.Kept, 0, len(objects))
	for _, object := range objects {
		i, err := itemOf(object)
		if err != nil {
			return err
		}
		listed = append(listed, i.kept)
	}
	s.watch.replace(s.namespace, listed)
	s.recovered()
	return nil
}

// Resync does nothing: the loop looks at everything again by itself where it must.
func (s *sink) Resync() error { return nil }

func itemOf(object any) (*item, error) {
	i, ok := object.(*item)
	if !ok {
		return nil, fmt.Errorf("the watch delivered %T instead of a workload", object)
	}
	return i, nil
}
