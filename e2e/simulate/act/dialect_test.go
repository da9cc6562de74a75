package act

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestAskReloaderReplacesWhatWasAskedBefore(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	const web = "deployments/shop/web"
	onTemplate := func() world.Object { return world.Annotations(templateOf(world.Deployments, f.get(web))) }
	others := func() world.Object {
		return without(world.Annotations(f.get(web)), func(key string) bool { return !isList(key) && !strings.Contains(key, otherDomain) })
	}
	require.NoError(t, f.do(AskReloader, web, "for", "search", "lists", "kept"))
	assert.Equal(t, "true", others()[otherSearch])
	assert.Contains(t, others(), listOfConfigMaps)

	require.NoError(t, f.do(AskReloader, web, "for", "auto-but", "lists", "removed"))
	assert.Equal(t, world.Object{otherAuto: "true", otherWithoutConfigMap: "extra", otherWithoutSecret: " db "}, others())

	require.NoError(t, f.do(AskReloader, web, "for", "on-template"))
	assert.Empty(t, others())
	assert.Equal(t, "true", onTemplate()[otherAuto])

	require.NoError(t, f.do(AskReloader, web, "for", "none"))
	assert.Empty(t, others())
	assert.NotContains(t, onTemplate(), otherAuto)
}

func TestRecreatedWorkloadAsksReloaderInsteadOfListing(t *testing.T) {
	t.Parallel()
	for n, asks := range slices.Concat(wishes(), wishes()) {
		f, version := newRecorder(t), firstVersion
		if n >= len(wishes()) {
			version = bareVersion
		}
		const web = "deployments/shop/web"
		require.NoError(t, f.do(RecreateWorkload, web, "from", "manifest", "version", strconv.Itoa(version), "pause", "0s", "asks", asks))
		annotations := world.Annotations(f.get(web))
		assert.NotContains(t, annotations, listOfConfigMaps)
		wanted, err := wish(world.Key{Resource: world.Deployments, Namespace: shop, Name: "web"}, asks)
		require.NoError(t, err)
		if asks == "on-template" {
			annotations = world.Annotations(templateOf(world.Deployments, f.get(web)))
		}
		assert.Subset(t, annotations, wanted, asks)
	}
}

func TestAnnotateForReloaderSetsAndRemovesAnAnnotation(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	const app = "configmaps/shop/app"
	require.NoError(t, f.do(AnnotateForReloader, app, "annotation", "ignore", "value", "true"))
	assert.Equal(t, "true", world.Annotations(f.get(app))[otherDomain+"ignore"])
	require.NoError(t, f.do(AnnotateForReloader, app, "annotation", "ignore", "value", "absent"))
	assert.NotContains(t, world.Annotations(f.get(app)), otherDomain+"ignore")
}
