package configstate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// twoWatches returns the progress of a watch of ConfigMaps everywhere and one of Secrets in a namespace.
func twoWatches() (p *syncProgress, maps, secrets *watcher) {
	maps, secrets = &watcher{kind: reference.ConfigMap}, &watcher{kind: reference.Secret, namespace: "shop"}
	return newSyncProgress(watches{{kind: reference.ConfigMap}: maps, {reference.Secret, "shop"}: secrets}), maps, secrets
}

func TestProgressEndsOnceAllWatchesAndInitialDeliveriesHave(t *testing.T) {
	t.Parallel()
	p, maps, secrets := twoWatches()
	early := p.begin()
	assert.True(t, early, "a delivery before the end is an initial one")
	p.list(maps)
	p.finish()
	assert.False(t, p.synced(), "the other watch has not listed yet")
	late := p.begin()
	p.list(secrets)
	p.end(late)
	assert.False(t, p.synced(), "a delivery is under way")
	assert.False(t, p.begin(), "what comes after the last listing is no initial delivery")
	p.end(early)
	assert.True(t, p.synced(), "both watches have listed, and no delivery is under way")
	assert.NoError(t, p.wait(t.Context()))
	p.attempted(secrets, false)
	assert.True(t, p.synced(), "it remains so")
	assert.True(t, p.listed(secrets), "a watch that fails later has listed nevertheless")
}

func TestSettledWatchesOfANamespace(t *testing.T) {
	t.Parallel()
	p, maps, secrets := twoWatches()
	kinds := []reference.Kind{reference.ConfigMap, reference.Secret}
	p.list(maps)
	assert.False(t, p.settled("shop", kinds), "the Secrets are not listed")
	p.attempted(secrets, true)
	assert.True(t, p.settled("shop", kinds), "they may not be listed")
	assert.False(t, p.listed(secrets), "a refused list is no list")
	assert.False(t, p.settled("elsewhere", kinds), "no watch has its Secrets")
	assert.True(t, p.settled("elsewhere", kinds[:1]), "its ConfigMaps are watched")
}

// A cluster without the driver has no SecretProviderClasses; one without ConfigMaps is none.
func TestFailureOfAWatchThatHoldsUpTheRest(t *testing.T) {
	t.Parallel()
	unknown, busy := apierrors.NewNotFound(schema.GroupResource{}, ""), apierrors.NewInternalError(assert.AnError)
	for name, c := range map[string]struct {
		kind    reference.Kind
		err     error
		refused bool
		holds   bool
	}{
		"no ConfigMaps":              {reference.ConfigMap, unknown, false, true},
		"ConfigMaps are refused":     {reference.ConfigMap, busy, true, false},
		"no classes":                 {reference.SecretProviderClass, unknown, false, false},
		"classes are not delivered":  {reference.SecretProviderClass, busy, false, true},
		"statuses are not delivered": {podStatusKind, busy, false, true},
		"statuses are refused":       {podStatusKind, busy, true, false},
	} {
		w := &watcher{kind: c.kind}
		w.progress = newSyncProgress(watches{{kind: c.kind}: w})
		w.failed(c.err, c.refused)
		assert.Equal(t, !c.holds, w.progress.synced(), name)
	}
}
