package configstate

import (
	"testing"
	"testing/synctest"
	"time"

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
	assert.True(t, p.synced())
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
	p.unserved(secrets)
	assert.True(t, p.settled("shop", kinds), "there are none")
	assert.False(t, p.listed(secrets))
	assert.False(t, p.settled("elsewhere", kinds), "no watch has its Secrets")
	assert.True(t, p.settled("elsewhere", kinds[:1]))
}

// A cluster without the driver has no SecretProviderClasses; one without ConfigMaps is none. An API server that has just started refuses
// each request until it has read the roles.
func TestFailureOfAWatchThatHoldsUpTheRest(t *testing.T) {
	t.Parallel()
	unknown, busy := apierrors.NewNotFound(schema.GroupResource{}, ""), apierrors.NewInternalError(assert.AnError)
	for name, c := range map[string]struct {
		kind    reference.Kind
		err     error
		refused bool
		// holds is how long it holds up the rest.
		holds time.Duration
	}{
		"no ConfigMaps":              {reference.ConfigMap, unknown, false, time.Minute},
		"ConfigMaps are refused":     {reference.ConfigMap, busy, true, 7 * time.Second},
		"no classes":                 {reference.SecretProviderClass, unknown, false, 0},
		"classes are not delivered":  {reference.SecretProviderClass, busy, false, time.Minute},
		"statuses are not delivered": {podStatusKind, busy, false, time.Minute},
		"statuses are refused":       {podStatusKind, busy, true, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &watcher{kind: c.kind}
				w.progress = newSyncProgress(watches{{kind: c.kind}: w})
				if c.holds > 0 {
					w.failed(c.err, c.refused)
					<-time.After(c.holds - time.Nanosecond)
					w.failed(c.err, c.refused)
					assert.False(t, w.progress.synced())
					<-time.After(time.Nanosecond)
				}
				w.failed(c.err, c.refused)
				assert.True(t, w.progress.synced())
			})
		})
	}
}

func TestRefusalAfterAnOutageIsGivenTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{kind: reference.Secret}
		w.progress = newSyncProgress(watches{{kind: reference.Secret}: w})
		w.failed(assert.AnError, false)
		<-time.After(30 * time.Second)
		w.failed(assert.AnError, true)
		assert.False(t, w.progress.synced(), "the API server has just started")
	})
}
