package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// expiring has three pages, of which the second expires. The API server answers that with the page of the present state, if it still can.
type expiring struct {
	client.Reader
	later string
	asked []string
}

func (e *expiring) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	e.asked = append(e.asked, o.Continue)
	expired := apierrors.NewResourceExpired("the continue parameter is too old")
	expired.ErrStatus.Continue = e.later
	list.SetContinue(map[string]string{"": "2", "2, later": "3"}[o.Continue])
	if o.Continue == "2" {
		return expired
	}
	return nil
}

func TestListGoesOnWhereAPageHasExpired(t *testing.T) {
	t.Parallel()
	e, used := &expiring{later: "2, later"}, 0
	require.NoError(t, pages(t.Context(), e, &unstructured.UnstructuredList{}, func() { used++ }))
	assert.Equal(t, []string{"", "2", "2, later", "3"}, e.asked)
	assert.Equal(t, 3, used, "each page once")

	err := pages(t.Context(), &expiring{}, &unstructured.UnstructuredList{}, func() {})
	require.True(t, apierrors.IsResourceExpired(err), "no later page is named: %v", err)
	assert.Empty(t, laterPage(errors.New("refused")))
}
