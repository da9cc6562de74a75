package watch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is learnt after WaitForSync has returned is a change, also where the
// callback for the sync comes later.
func TestSyncDeliversTheStateAtSync(t *testing.T) {
	t.Parallel()
	var calls journal
	single := newSingle(t, newServer(t), calls.single("a"))
	state := func(version string) *unstructured.Unstructured {
		u := object("a")
		u.SetResourceVersion(version)
		return u
	}
	require.NoError(t, single.Learn(state("1")))
	single.Changed()
	single.Deliver(t.Context())
	assert.Empty(t, calls.read(), "before sync")
	single.Sync(func() { assert.NoError(t, single.Learn(state("2"))) }) // the moment in which WaitForSync returns
	single.Changed()
	single.Deliver(t.Context())
	assert.Equal(t, []string{"synced a@1", "change a@2"}, calls.read())
	single.Changed()
	single.Deliver(t.Context())
	assert.Empty(t, calls.read(), "this state was shown")
}

// Which goroutine comes first after the sync is random.
func TestUpdateAfterWaitForSyncReachesOnChange(t *testing.T) {
	t.Parallel()
	for range 50 {
		inBubble(t, func(t bubble) {
			var calls journal
			s := newServer(t, object("a"))
			single := newSingle(t, s, calls.single("a"))
			updated := make(chan error, 1)
			go func() {
				err := single.WaitForSync(t.Context())
				s.Update(object("a"))
				updated <- err
			}()
			start(t, single)
			require.NoError(t, <-updated)
			synctest.Wait()
			assert.Equal(t, []string{"synced a@1001", "change a@1002"}, calls.read())
		})
	}
}
