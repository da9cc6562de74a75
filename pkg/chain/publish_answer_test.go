package chain_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
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
				w.change(true, stored)
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

				w.change(false, nil)
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
		w.change(true, map[string]string{"example.org/checksum": "v1:x"})
		w.put(proxies, "p", map[string]any{}, map[string]string{"example.org/checksum": "v1:x"})
		w.pass(time.Second)
		require.Len(t, w.reports(), 1)
		assert.ErrorContains(t, w.reports()[0].Err, "field manager")
	})
}

// The object refers to nothing any more, so that it has no CRC-32: there is nothing to write.
func TestAFailureIsForgottenOnceThereIsNoDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.Configure([]referent.Definition{{
			ID: "proxies", GVR: proxies, Publish: true, Algorithm: referent.AlgorithmCRC32,
			Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}},
		}})
		w.put(proxies, "p", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		require.InDelta(t, 1, w.unpublished(), 0)
		w.put(proxies, "p", map[string]any{"secret": "absent"})
		w.pass(6 * time.Minute)
		require.InDelta(t, 1, w.unpublished(), 0, "held: what is due is not known")
		w.put(proxies, "p", map[string]any{})
		w.pass(time.Second)
		require.Zero(t, w.unpublished())

		// Another field manager keeps the annotation, until a user removes it.
		foreign := map[string]string{"example.org/checksum": "v1:x"}
		w.refuse(nil)
		w.change(true, foreign)
		w.put(proxies, "p", map[string]any{}, foreign)
		w.pass(6 * time.Minute)
		require.InDelta(t, 1, w.unpublished(), 0)
		w.put(proxies, "p", map[string]any{})
		w.pass(6 * time.Minute)
		assert.Zero(t, w.unpublished())
	})
}

// A leader that was frozen writes late: the digest of the next leader must remain, which its watch has not delivered.
func TestADigestIsWrittenIntoTheVersionThatTheWatchHasDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var versions []string
		stored := "1"
		take := func(next string) []string {
			w.mu.Lock()
			defer w.mu.Unlock()
			all := versions
			stored, versions = next, nil
			return all
		}
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			_, written, err := accepted(action)
			w.mu.Lock()
			defer w.mu.Unlock()
			version := written.(*unstructured.Unstructured).GetResourceVersion()
			if versions = append(versions, version); version != stored {
				err = apierrors.NewConflict(proxies.GroupResource(), "p", errors.New("the object has been modified"))
			}
			return true, written, err
		})
		w.graph() // its proxy is of version 2
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Second)
		require.Equal(t, []string{"2"}, slices.Compact(take("1")))
		w.pass(time.Second)
		require.Equal(t, []string{"2"}, slices.Compact(take("1")), "again, without an event, too")
		w.pass(10 * time.Minute)
		assert.Less(t, len(take("3")), 20, "less and less often")

		w.put(proxies, "p", map[string]any{"service": "s"})
		w.pass(70 * time.Second)
		assert.Equal(t, []string{"3"}, slices.Compact(take("3")))
	})
}

// The operator of a resource may write its status at any time. What lasts is reported.
func TestADigestWhoseObjectHasChangedIsWrittenSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		w.refuse(apierrors.NewConflict(proxies.GroupResource(), "p", errors.New("the object has been modified")))
		before := w.writes.Load()
		w.set(tls, "2")
		w.pass(20 * time.Second)
		assert.EqualValues(t, 7, w.writes.Load()-before, "after 0.2 s, 0.4 s, and so on")
		assert.Empty(t, w.reports(), "it may pass")
		w.pass(2 * time.Minute)
		assert.Len(t, w.reports(), 1, "it lasts")
		w.refuse(nil)
		w.pass(70 * time.Second)
		assert.Zero(t, w.unpublished(), "within a minute")
	})
}
