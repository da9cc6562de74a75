package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A mutating webhook removes the annotation from each write: the object does not change, and no event of it comes.
func TestADigestThatIsNotStoredIsRefused(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]map[string]string{
		"removed": nil, "among others": {"team": "a"}, "replaced": {"example.org/checksum": "another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newRefused(t)
				w.admit = func(written *unstructured.Unstructured) { written.SetAnnotations(stored) }
				w.refuse(nil)
				w.pass(12 * time.Second)
				require.Len(t, w.reports(), 1, "at once")
				assert.ErrorContains(t, w.reports()[0].Err, "example.org/checksum")
				assert.ErrorContains(t, w.reports()[0].Err, "webhook")
				assert.InDelta(t, 1, w.unpublished(), 0)
				before := w.writes.Load()
				w.pass(time.Hour)
				assert.Less(t, w.writes.Load()-before, int32(20), "every 5 minutes")
				assert.Greater(t, w.writes.Load()-before, int32(10), "it does not give up")

				w.mu.Lock()
				w.admit = nil
				w.mu.Unlock()
				w.pass(6 * time.Minute)
				assert.Zero(t, w.unpublished(), "it is written")
			})
		})
	}
}

// The object refers to nothing any more. Server-side apply leaves an annotation that another field manager owns, too.
func TestADigestThatRemainsIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		w.mu.Lock()
		w.admit = func(written *unstructured.Unstructured) { written.SetAnnotations(map[string]string{"example.org/checksum": "v1:x"}) }
		w.mu.Unlock()
		w.put(proxies, "p", map[string]any{}, map[string]string{"example.org/checksum": "v1:x"})
		w.pass(time.Second)
		require.Len(t, w.reports(), 1)
		assert.ErrorContains(t, w.reports()[0].Err, "field manager")
	})
}
