package sequence_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// merge applies a merge patch to a workload.
func merge(s *fixture.Fixture, of observe.Workload, patch string) {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fixture.GroupVersionKind(of.Kind))
	s.Merge(object, of.Name, patch)
}
