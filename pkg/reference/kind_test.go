package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestKindsOfTheAPI(t *testing.T) {
	t.Parallel()
	kinds, resources := map[string]bool{}, []string{}
	for _, kind := range reference.Kinds() {
		gvk, ok := kind.GroupVersionKind()
		assert.True(t, ok)
		assert.Equal(t, corev1.SchemeGroupVersion, gvk.GroupVersion())
		kinds[gvk.Kind] = true
		resources = append(resources, kind.Resource())
	}
	assert.Equal(t, map[string]bool{"ConfigMap": true, "Secret": true}, kinds)
	assert.Equal(t, []string{"configmaps", "secrets"}, resources)
	_, ok := reference.Kind("*").GroupVersionKind()
	assert.False(t, ok, "a Change of any object is of no kind")
}
