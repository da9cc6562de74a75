package chain_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// publishing is a world that leads, and keeps the annotations of the last write.
type publishing struct {
	*world
	writes atomic.Int32
	last   atomic.Value
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	w := &publishing{world: newWorld(t)}
	w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written := &unstructured.Unstructured{}
		assert.NoError(t, written.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()))
		w.last.Store(written.GetAnnotations())
		w.writes.Add(1)
		return true, written, nil
	})
	go func() { assert.NoError(t, w.Lead(t.Context())) }()
	return w
}

// keep stores the proxy with the annotations of the last write, strip without.
func (w *publishing) keep() {
	w.put(proxies, "p", map[string]any{"service": "s"}, w.last.Load().(map[string]string))
}

func (w *publishing) strip() { w.put(proxies, "p", map[string]any{"service": "s"}) }

func (w *world) remove(name string) {
	w.Helper()
	require.NoError(w, w.client.Resource(proxies).Namespace("ns").Delete(w.Context(), name, metav1.DeleteOptions{}))
	synctest.Wait() // the client buffers some events only
}

// A tenant of a namespace out of scope must not fill the memory.
func TestDeletedObjectsOutOfScopeAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPublishing(t)
		w.outside.Store(true)
		w.graph()
		for n := range 100 {
			w.put(proxies, fmt.Sprint("p", n), map[string]any{"service": "s"})
			synctest.Wait()
		}
		w.pass(time.Second)
		require.Equal(t, 101, w.Due(), "they are published when the namespace comes into scope")
		for n := range 100 {
			w.remove(fmt.Sprint("p", n))
		}
		w.pass(2 * time.Minute)
		assert.Equal(t, 1, w.Due())
		w.remove("p")
		w.pass(2 * time.Minute)
		assert.Zero(t, w.Due())
		assert.Zero(t, w.PublishedNamespaces())

		w.strip() // it is created again
		w.pass(time.Second)
		w.outside.Store(false)
		w.pass(time.Minute + time.Second)
		assert.EqualValues(t, 1, w.writes.Load(), "it is published after all")
	})
}

// The annotation of an object out of scope is not written, so that no other writer replaces it.
func TestAnObjectOutOfScopeIsNotContested(t *testing.T) {
	t.Parallel()
	leave := func(w *publishing) { w.outside.Store(true) }
	for name, remove := range map[string]func(w *publishing){
		"removed out of scope": func(w *publishing) {
			leave(w)
			w.strip()
		},
		"removed again and again": func(w *publishing) {
			leave(w)
			for range 5 {
				w.pass(time.Minute)
				w.strip()
			}
		},
		"out of scope during the delay": func(w *publishing) {
			w.strip()
			w.pass(time.Second)
			leave(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newPublishing(t)
				w.graph()
				w.pass(time.Second)
				w.keep()
				w.pass(time.Minute)
				require.EqualValues(t, 1, w.writes.Load())
				remove(w)
				w.pass(time.Minute)
				assert.Zero(t, w.Contested())
				assert.EqualValues(t, 1, w.writes.Load())
				w.outside.Store(false)
				w.pass(time.Minute + time.Second)
				assert.EqualValues(t, 2, w.writes.Load(), "it is restored when its namespace comes back into scope")
			})
		})
	}
}

func TestADeletedObjectIsContestedNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPublishing(t)
		w.graph()
		w.pass(time.Second)
		w.strip()
		w.pass(11 * time.Second)
		w.keep()
		w.pass(time.Minute)
		require.Equal(t, 1, w.Contested())
		w.remove("p")
		w.pass(time.Second)
		assert.Zero(t, w.Contested())
	})
}

// Each removal is another event, such as a restore of an old manifest by hand.
func TestDigestThatIsRarelyRemovedIsRestoredSoon(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPublishing(t)
		w.graph()
		w.pass(time.Second)
		w.keep()
		w.pass(21 * time.Hour)
		for removal := range int32(8) {
			w.pass(3 * time.Hour)
			require.Equal(t, 1+removal, w.writes.Load())
			w.strip()
			w.pass(11 * time.Second)
			assert.Equal(t, 2+removal, w.writes.Load())
			w.keep()
		}
	})
}

// Such as a GitOps controller that applies its manifest every hour.
func TestDigestThatIsRemovedEachHourIsContested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPublishing(t)
		w.graph()
		w.pass(time.Second)
		for range 8 {
			w.keep()
			w.pass(time.Hour)
			w.strip()
			w.pass(12 * time.Minute)
		}
		w.strip()
		before := w.writes.Load()
		w.pass(10 * time.Minute)
		assert.Equal(t, before, w.writes.Load(), "after 11 minutes")
		w.pass(time.Minute)
		assert.Equal(t, before+1, w.writes.Load())
	})
}

func TestAFailureOutOfScopeIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.pass(time.Minute)
		require.InDelta(t, 1, w.unpublished(), 0)
		w.outside.Store(true)
		w.pass(10 * time.Minute)
		assert.Zero(t, w.unpublished(), "nothing is to be written")
		w.outside.Store(false)
		w.pass(2 * time.Minute)
		assert.InDelta(t, 1, w.unpublished(), 0, "it fails as before")
		w.refuse(nil)
		w.pass(2 * time.Minute)
		assert.Zero(t, w.unpublished())

		w.refuse(errors.New("not now"))
		w.set(tls, "2")
		w.pass(2 * time.Second)
		require.InDelta(t, 1, w.unpublished(), 0)
		w.outside.Store(true)
		w.remove("p")
		w.pass(10 * time.Minute)
		assert.Zero(t, w.unpublished(), "it is deleted")
	})
}

// One object of a namespace out of scope forgets the failures of all. The others are not due before their own timers.
func TestAllFailuresOutOfScopeAreWrittenWhenItIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.put(proxies, "q", map[string]any{"service": "s"})
		w.pass(3 * time.Minute)
		require.InDelta(t, 2, w.unpublished(), 0)
		w.outside.Store(true)
		w.pass(20 * time.Minute)
		require.Zero(t, w.unpublished())
		w.refuse(nil)
		before := w.writes.Load()
		w.outside.Store(false)
		w.pass(10 * time.Minute)
		assert.GreaterOrEqual(t, w.writes.Load()-before, int32(2), "both objects are written")
	})
}
