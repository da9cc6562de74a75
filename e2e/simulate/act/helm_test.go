package act

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestHelmMergesTheOldManifestTheNewOneAndWhatIsLive(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("helm-upgrade", cart, "version", "2"))
	f.stamp(cart)
	require.NoError(t, f.do("scale", cart, "replicas", "6"))

	require.NoError(t, f.do("helm-upgrade", cart, "version", "3"))
	template := world.Annotations(world.Section(f.get(cart), "spec", "template"))
	assert.Equal(t, world.Object{"example.com/scrape": "true", Prefix + "config-hash": "0a1b"}, template,
		"only the old manifest has channel, only the live object has the stamp")
	assert.EqualValues(t, 2, world.Section(f.get(cart), "spec")["replicas"], "the chart has its own idea of replicas")
	assert.Equal(t, "Helm", world.Section(f.get(cart), "metadata", "labels")["app.kubernetes.io/managed-by"])
	assert.NotNil(t, f.get("secrets/shop/sh.helm.release.v1.cart.v2"))
}

func TestHelmRollbackBringsConfigAndWorkloadBack(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	app := "configmaps/shop/app"
	value := func() any { return world.Section(f.get(app), "data")["app.properties"] } // the first key
	require.NoError(t, f.do("helm-upgrade", cart, "version", "1", "config", app, "value", "one"))
	require.NoError(t, f.do("helm-upgrade", cart, "version", "2", "config", app, "value", "two"))
	require.NoError(t, f.do("helm-upgrade", cart, "version", "3"))
	assert.Equal(t, "two", value(), "values are reused")

	require.NoError(t, f.do("helm-rollback", cart, "back", "2"))
	assert.Equal(t, "one", value())
	assert.Equal(t, "1", world.Section(f.get(cart), "metadata", "labels")["version"])
	assert.NotNil(t, f.get("secrets/shop/sh.helm.release.v1.cart.v4"))
	assert.ErrorIs(t, f.do("helm-rollback", cart, "back", "4"), ErrSkipped)
}

func TestHelmRemovesTheConfigThatTheChartLost(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("helm-upgrade", cart, "version", "1"))
	require.NoError(t, f.do("helm-upgrade", cart, "version", "2", "config", "secrets/shop/db", "value", "two"))
	require.NoError(t, f.do("helm-rollback", cart, "back", "1"))
	assert.Nil(t, f.get("secrets/shop/db"))
}

func TestHelmKeepsTenRevisions(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	for n := 1; n <= 12; n++ {
		require.NoError(t, f.do("helm-upgrade", cart, "version", fmt.Sprint(n)))
	}
	assert.Nil(t, f.get("secrets/shop/sh.helm.release.v1.cart.v2"))
	for n := 3; n <= 12; n++ {
		assert.NotNil(t, f.get(fmt.Sprintf("secrets/shop/sh.helm.release.v1.cart.v%d", n)))
	}
}
