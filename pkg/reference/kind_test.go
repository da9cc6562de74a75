package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestKindsOfTheAPI(t *testing.T) {
	t.Parallel()
	kinds, resources := map[string]bool{}, []string{}
	for _, kind := range reference.Kinds() {
		gvk, ok := kind.GroupVersionKind()
		assert.True(t, ok, "the kind of %s is known", kind)
		assert.Equal(t, corev1.SchemeGroupVersion, gvk.GroupVersion())
		kinds[gvk.Kind] = true
		resources = append(resources, kind.Resource())
	}
	assert.Equal(t, map[string]bool{"ConfigMap": true, "Secret": true}, kinds)
	assert.Equal(t, []string{"configmaps", "secrets"}, resources)
	class, ok := reference.SecretProviderClass.GroupVersionKind()
	assert.True(t, ok, "the kind of a SecretProviderClass is known")
	assert.Equal(t, "secrets-store.csi.x-k8s.io/v1, Kind=SecretProviderClass", class.String())
	assert.Equal(t, "secretproviderclasses", reference.SecretProviderClass.Resource())
	assert.Equal(t, "secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io", reference.SecretProviderClass.Content())
	assert.Equal(t, "secrets", reference.Secret.Content())
	_, ok = reference.Kind("*").GroupVersionKind()
	assert.False(t, ok, "a Change of any object is of no kind")
}

func TestKindOfACustomResource(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "kroxylicious.io", Resource: "kafkaproxies"}
	kind := reference.CustomKind(resource)
	assert.Equal(t, reference.Kind("kafkaproxies.kroxylicious.io"), kind)
	assert.True(t, kind.Custom(), "its name has a group")
	assert.Equal(t, resource, kind.GroupResource())
	assert.Equal(t, "kafkaproxies.kroxylicious.io", kind.Resource())
	_, ok := kind.GroupVersionKind()
	assert.False(t, ok, "the name of its kind is not known")
	for _, other := range reference.Kinds() {
		assert.False(t, other.Custom(), "%s is built in", other)
	}
}
