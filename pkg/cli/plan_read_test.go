package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestPlanKeepsOfWorkloadsWhatItCompares(t *testing.T) {
	t.Parallel()
	kinds := workload.NewKinds(workload.Builtin()...)
	for name, wantStatus := range map[string]bool{"deployment": false, "job": true} {
		kind := kinds.Find(name)[0]
		o := reduced(kind, unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "cart", "managedFields": []any{}, "annotations": map[string]any{
				"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}",
			}},
			"spec":   map[string]any{"template": map[string]any{}},
			"status": map[string]any{"conditions": []any{}},
		}})
		assert.Equal(t, map[string]string{"a": "b"}, o.Annotations(), name)
		assert.True(t, o.HasTemplate(), name)
		assert.NotContains(t, o.Raw["metadata"], "managedFields", name)
		assert.Equal(t, wantStatus, o.Raw["status"] != nil, name)
	}
}
