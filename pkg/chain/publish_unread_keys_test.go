package chain_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// unreadKeys is a world whose leader finds a digest under an unknown key, and cannot read the keys.
func unreadKeys(t *testing.T) (w *refused, keys *keySecret, written func() []string) {
	t.Helper()
	w = &refused{registry: prometheus.NewRegistry()}
	w.world, keys, written = rotatedUnseen(t, "2")
	require.NoError(t, w.Register(w.registry))
	keys.set(func() { keys.stored, keys.err = digesttest.Ring(t, "1"), errors.New("the KMS does not answer") })
	go func() { assert.NoError(t, w.Lead(t.Context())) }()
	w.pass(5 * time.Second)
	return w, keys, written
}

func TestDigestThatWaitsForTheKeysIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, keys, written := unreadKeys(t)
		assert.InDelta(t, 1, w.unpublished(), 0)
		assert.Empty(t, w.reports(), "the API server may be away for a moment")
		assert.Zero(t, w.Due(), "each evaluation would look at all that wait")
		w.pass(time.Minute)
		reports := w.reports()
		require.Len(t, reports, 1)
		require.ErrorContains(t, reports[0].Err, "the KMS does not answer")
		assert.Contains(t, reports[0].Remedy, "read the Secret")
		assert.Equal(t, "p", reports[0].Object.GetName())
		w.pass(30 * time.Minute)
		assert.Len(t, w.reports(), 1, "once")
		assert.Empty(t, written())
		keys.set(func() { keys.err = nil })
		w.pass(11 * time.Second)
		assert.Len(t, written(), 1)
		assert.Zero(t, w.unpublished())
	})
}

// Without the object, there is no Event: the report comes with the object.
func TestDigestThatWaitsForTheKeysIsReportedOnceItsObjectIsListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := unreadKeys(t)
		w.listing.Store(int64(time.Minute))
		w.Watching(proxies).Replace()
		w.pass(50 * time.Second)
		assert.Empty(t, w.reports())
		w.pass(50 * time.Second)
		assert.Len(t, w.reports(), 1)
	})
}

// Another configuration ends the read of the keys, which is no failure.
func TestKeysAreReadAgainAtOnceUnderAnotherConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, keys, written := rotatedUnseen(t, "2")
		keys.set(func() { keys.stored, keys.early = digesttest.Ring(t, "1"), time.Hour })
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Millisecond)
		keys.set(func() { keys.hanging = true })
		w.pass(5 * time.Second)
		require.Equal(t, 1, w.AwaitingKeys())
		keys.set(func() { keys.hanging, keys.early = false, 0 })
		w.Configure(append(proxyToSecret(), referent.Definition{ID: "routes", GVR: routes}))
		w.pass(time.Second)
		assert.Len(t, written(), 1)
	})
}

func TestDigestDoesNotWaitForTheKeysAnyMore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		happens func(w *refused)
		// back brings it back; nil where nothing does.
		back func(w *refused)
	}{
		"the object is deleted": {happens: func(w *refused) { assert.NoError(w, w.client.Tracker().Delete(proxies, "ns", "p")) }},
		"the namespace is out of scope": {
			happens: func(w *refused) { w.outside.Store(true) },
			back:    func(w *refused) { w.outside.Store(false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, keys, _ := unreadKeys(t)
				require.Equal(t, 1, w.AwaitingKeys())
				end.happens(w)
				w.pass(time.Minute)
				assert.Zero(t, w.unpublished())
				assert.Zero(t, w.AwaitingKeys())
				reads := keys.count()
				w.pass(time.Hour)
				assert.Equal(t, reads, keys.count(), "nothing waits for another read")
				if end.back != nil {
					end.back(w)
					w.pass(2 * time.Minute)
					assert.InDelta(t, 1, w.unpublished(), 0)
				}
			})
		})
	}
}

// The watch of the Secret can deliver the key while reads fail.
func TestDigestUnderAKeyThatTheWatchDeliversIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, written := unreadKeys(t)
		w.rotate(digesttest.Ring(t, "12"))
		w.pass(5 * time.Second)
		assert.Empty(t, written())
		assert.Zero(t, w.unpublished())
		assert.Zero(t, w.AwaitingKeys())
	})
}
