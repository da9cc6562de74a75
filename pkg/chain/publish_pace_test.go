package chain_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// Two installations take each other's digests: what one writes changes the digest of the other, without end.
func TestADigestThatChangesWithEachWriteIsWrittenMoreAndMoreSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		before := w.writes.Load()
		change, seen := 0, before
		circle := func(d, look time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); w.pass(look) {
				if now := w.writes.Load(); now != seen || change == 0 {
					seen = now
					change++
					w.set(tls, fmt.Sprint("circle ", change))
				}
			}
		}
		circle(5*time.Second, 100*time.Millisecond)
		assert.LessOrEqual(t, w.writes.Load()-before, int32(11))
		assert.GreaterOrEqual(t, w.writes.Load()-before, int32(9), "some changes in a row are usual")
		circle(time.Hour, time.Second)
		assert.Less(t, w.writes.Load()-before, int32(75), "one a minute")
		assert.Greater(t, w.writes.Load()-before, int32(55), "it does not give up")

		w.pass(10 * time.Minute)
		last := w.writes.Load()
		w.set(tls, "calm")
		w.pass(time.Second)
		assert.Equal(t, last+1, w.writes.Load(), "the circle is broken")
	})
}

// The operator of a resource writes its status meanwhile.
func TestADigestThatWaitsToBeWrittenIsNotContested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		for n := range 100 {
			w.set(tls, fmt.Sprint(n))
			w.put(proxies, "p", map[string]any{"service": "s"})
			w.pass(300 * time.Millisecond)
		}
		assert.Zero(t, w.Contested())
	})
}

// putMany creates so many proxies with names that begin in the same way.
func (w *refused) putMany(prefix string, count int) {
	for n := range count {
		w.put(proxies, fmt.Sprint(prefix, n), map[string]any{"service": "s"})
		synctest.Wait() // the client buffers some events only
	}
}

// The API is slow, and the namespace has more objects than are written before the graph is asked again.
func TestADigestThatWaitsForOtherWritesIsNotContested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		w.stalled.Store(new(string))
		w.putMany("q", 150)
		w.pass(11 * time.Second)
		assert.Zero(t, w.Contested())
	})
}

// A validating webhook delays the writes of many objects until they are given up. Their repetitions must not keep another digest waiting.
func TestFirstWriteOfADigestPrecedesRepeatedOnes(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		prefix := "p"
		w.stalled.Store(&prefix)
		const many = 150
		w.putMany("p", many)
		w.pass(time.Hour)
		assert.InDelta(t, many, w.unpublished(), 0, "each has been tried")
		before := w.writes.Load()
		w.put(proxies, "z", map[string]any{"service": "s"})
		w.pass(12 * time.Second)
		assert.Greater(t, w.writes.Load(), before)

		w.stalled.Store(nil)
		w.pass(70 * time.Second)
		assert.Zero(t, w.unpublished())
	})
}

// Writes that fail are repeated in turn, whatever their names.
func TestRepeatedWritesOfManyDigestsTakeTurns(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		w.stalled.Store(new(string))
		w.putMany("p", 150)
		w.put(proxies, "z", map[string]any{"service": "s"})
		w.pass(time.Hour)
		before := w.writes.Load()
		prefix := "p"
		w.stalled.Store(&prefix)
		w.pass(time.Hour)
		assert.Equal(t, before+1, w.writes.Load())
	})
}

// afterBurst returns a refused that accepts all, right after a hundred changes in half a minute: the next write waits.
func afterBurst(t *testing.T) *refused {
	t.Helper()
	w := newRefused(t)
	w.refuse(nil)
	w.pass(time.Minute)
	for n := range 100 {
		w.set(tls, fmt.Sprint(n))
		w.pass(300 * time.Millisecond)
	}
	return w
}

// A digest that changes while its write waits is written once, with the last value.
func TestAChangeDuringAPauseIsPublishedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := afterBurst(t)
		before := w.writes.Load()
		w.pass(2 * time.Minute)
		assert.LessOrEqual(t, w.writes.Load(), before+1)
		assert.Zero(t, w.unpublished())
	})
}

// After a burst of changes, another writer replaces each digest: that is no wait.
func TestADigestThatIsReplacedAfterABurstIsContested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := afterBurst(t)
		seen := int32(0)
		for range 60 * 60 / 5 {
			w.pass(5 * time.Second)
			if writes := w.writes.Load(); writes > seen {
				seen = writes
				w.put(proxies, "p", map[string]any{"service": "s"})
			}
		}
		w.pass(5 * time.Second)
		assert.Positive(t, w.Contested())
	})
}

// An API server that has just started refuses everything, until it has read the roles.
func TestAMissingPermissionToPublishIsReportedOnceItLasts(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(proxies.GroupResource(), "p", errors.New(`User "a" cannot patch resource "proxies"`))
	for name, refusal := range map[string]error{"no permission": forbidden, "the credentials": apierrors.NewUnauthorized("expired")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newRefused(t)
				w.refuse(refusal)
				w.pass(5 * time.Second)
				assert.Empty(t, w.reports(), "it may pass")
				w.pass(7 * time.Second)
				assert.Len(t, w.reports(), 1)
				w.refuse(nil)
				w.pass(30 * time.Second)
				require.Zero(t, w.unpublished())

				w.refuse(apierrors.NewInternalError(errors.New("connection refused")))
				w.set(tls, "2")
				w.pass(25 * time.Second)
				require.Len(t, w.reports(), 1)
				w.refuse(refusal)
				w.pass(15 * time.Second)
				assert.Len(t, w.reports(), 1, "the API server was away before")
				w.pass(time.Minute)
				assert.Len(t, w.reports(), 2)
				w.refuse(nil)
				w.pass(10 * time.Minute)
				require.Zero(t, w.unpublished())

				w.refuse(refusal)
				for n := range 4 {
					assert.Len(t, w.reports(), 2)
					w.set(tls, fmt.Sprint("changed ", n))
					w.pass(3 * time.Second)
				}
				assert.Len(t, w.reports(), 3, "also where each write is of another digest")
			})
		})
	}
}
