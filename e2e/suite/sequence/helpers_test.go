package sequence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// entry returns the items of a Record, without the version and the key.
func entry(t *testing.T, record string) string {
	t.Helper()
	parts := strings.SplitN(record, ":", 4)
	require.Len(t, parts, 4, "the record %q", record)
	items, _, _ := strings.Cut(parts[3], "@")
	return items
}

// merge applies a merge patch to a workload.
func merge(s *fixture.Fixture, of observe.Workload, patch string) {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fixture.GroupVersionKind(of.Kind))
	s.Merge(object, of.Name, patch)
}
