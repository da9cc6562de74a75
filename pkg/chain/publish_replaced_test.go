package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// While a resource may not be listed, its objects remain, and with them the digests that are refused.
func TestARefusedDigestRemainsWhileItsResourceMayNotBeListed(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"the object remains": false, "the object is deleted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newRefused(t)
				w.refuse(apierrors.NewInvalid(schema.GroupKind{}, "p", nil))
				w.pass(10 * time.Minute)
				require.Len(t, w.reports(), 1)
				allow := w.world.refuse(proxies, apierrors.NewForbidden(proxies.GroupResource(), "", nil))
				w.Watching(proxies).Refused(t.Context())
				w.pass(6 * time.Minute)
				require.Contains(t, w.hold(), "forbidden")
				assert.InDelta(t, 1, w.unpublished(), 0)
				if deleted {
					w.remove("p")
				}
				before := w.writes.Load()
				allow()
				w.pass(10 * time.Minute)
				assert.Len(t, w.reports(), 1, "within the hour")
				if deleted {
					assert.Zero(t, w.unpublished())
					return
				}
				assert.InDelta(t, 1, w.unpublished(), 0)
				assert.LessOrEqual(t, w.writes.Load(), before+3, "the pauses do not begin again")
			})
		})
	}
}

// A watch that takes the place of another one has no objects before its first list has ended: what is to be written then must not be lost.
func TestADigestThatIsDueDuringTheListOfTheNextWatchIsWritten(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{"a Secret changes": true, "the leadership begins": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				var patches func() []string
				if leads {
					patches = w.lead()
					w.pass(time.Second)
					require.Len(t, patches(), 1)
					written := &unstructured.Unstructured{}
					require.NoError(t, written.UnmarshalJSON([]byte(patches()[0])))
					w.put(proxies, "p", map[string]any{"service": "s"}, written.GetAnnotations())
					w.pass(time.Minute)
				}
				w.listing.Store(int64(5 * time.Second))
				w.Watching(proxies).Replace()
				w.pass(time.Second)
				if leads {
					w.set(tls, "2")
				} else {
					patches = w.lead()
				}
				w.pass(3 * time.Second)
				before := len(patches())
				w.pass(2 * time.Second)
				assert.Len(t, patches(), before+1, "at the end of the list")
				assert.Zero(t, w.Contested())
			})
		})
	}
}
