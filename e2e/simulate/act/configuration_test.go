package act

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestConfigurationIsWrittenInEveryWay(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	on := configurationKey().String()
	require.ErrorIs(t, f.do(DeleteConfiguration, on), ErrSkipped)
	for _, says := range slices.Sorted(maps.Keys(configurations())) {
		require.NoError(t, f.do(WriteConfiguration, on, "says", says))
		written, there := world.Section(f.get(on), "data")["config.yaml"].(string)
		assert.Equal(t, configurations()[says], written)
		assert.Equal(t, says != "no key", there, says)
	}
	require.NoError(t, f.do(DeleteConfiguration, on))
	require.NoError(t, f.do(WriteConfiguration, on, "says", "no key"), "it is created, too")
	assert.NotContains(t, world.Section(f.get(on), "data"), "config.yaml")
	require.ErrorContains(t, f.do(WriteConfiguration, on, "says", "something"), "with.says")
	require.ErrorContains(t, f.do(WriteConfiguration, "configmaps/shop/app", "says", "nothing"), "on:")
}
