package act

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestSetupCreatesTheUniverse(t *testing.T) {
	t.Parallel()
	f := &recorder{t: t, objects: map[string]world.Object{}}
	require.NoError(t, SetupNamespaces(t.Context(), f))
	assert.Len(t, f.objects, 3)
	require.NoError(t, Setup(t.Context(), f), "the namespaces exist already")
	for _, key := range universe() {
		assert.NotNil(t, f.get(key.String()), key)
	}
	assert.Nil(t, f.get("deployments/bank/web"))
	assert.Nil(t, f.get(LateConfig))
	assert.Equal(t, "bank", world.Section(f.get("namespaces/bank"), "metadata", "labels")["team"])
}

func TestEveryReferenceIsToAKnownConfigObject(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		for _, s := range append(p.envFrom, p.volumes...) {
			_, err := configData(s.resource, s.name)
			assert.NoError(t, err, p.name)
		}
		for _, name := range world.Items(p.configMaps) {
			_, err := configData(world.ConfigMaps, name)
			assert.NoError(t, err, p.name)
		}
		assert.False(t, strings.HasSuffix(p.name, copySuffix), "%s has a name that only copies may have", p.name)
	}
}

func TestManifestIsCompleteForEveryKind(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		key := world.Key{Resource: p.resource, Namespace: shop, Name: p.name}
		manifest, err := workloadManifest(key, 1)
		require.NoError(t, err)
		containers, _ := world.Section(templateOf(key.Resource, manifest), "spec")["containers"].([]any)
		require.Len(t, containers, 1)
		assert.Equal(t, "example.com/"+p.name+":1", containers[0].(world.Object)["image"])
		assert.Equal(t, p.configMaps, world.Annotations(manifest)[listOfConfigMaps])
		assert.Equal(t, key.Resource.Kind, manifest["kind"])
	}
}
