package chain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// The API server answers again soon in most cases: the state must not change there and back.
func TestContentThatCannotBeReadIsHeldWhenThatLasts(t *testing.T) {
	t.Parallel()
	const unreadable = "secret/tls is unsynced: it cannot be read: no answer"
	hang := func(w *world) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hanging = true
	}
	for name, tc := range map[string]struct {
		fail    func(w *world)
		edits   int
		atFirst time.Duration
		want    string
	}{
		"error":                       {func(w *world) { w.fail(errors.New("no answer")) }, 1, 5 * time.Second, unreadable},
		"edits faster than the pause": {func(w *world) { w.fail(errors.New("no answer")) }, 6, 5 * time.Second, unreadable},
		"no answer at all":            {hang, 1, 29 * time.Second, "secret/tls is unsynced: it cannot be read: context deadline exceeded"},
		"text of any length":          {func(w *world) { w.fail(errors.New(strings.Repeat("a", 1000))) }, 1, 5 * time.Second, strings.Repeat("a", 200) + "…"},
		"refused":                     {func(w *world) { w.fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil)) }, 1, 0, "it may not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				before := w.entry()
				w.take()
				tc.fail(w)
				w.set(tls, "2")
				if tc.atFirst > 0 {
					w.pass(tc.atFirst)
					assert.Equal(t, before, w.entry(), "it may be read soon")
					assert.Empty(t, w.take())
				}
				for n := range tc.edits {
					w.set(tls, fmt.Sprint("edit ", n))
					w.pass(5 * time.Second)
				}
				w.pass(digest.ReportHoldAfter + 5*time.Second)
				assert.Contains(t, w.hold(), tc.want)
				assert.Contains(t, w.take(), "ns kafkaproxies.kroxylicious.io/p", "the loop reports it")

				w.fail(nil)
				w.mu.Lock()
				w.hanging = false
				w.mu.Unlock()
				w.pass(time.Minute)
				assert.NotEqual(t, before, w.entry())
			})
		})
	}
}

func TestContentThatIsReadAfterAFailureCountsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		for n := range 4 {
			w.fail(errors.New("no answer"))
			w.set(tls, fmt.Sprint("edit ", n))
			w.pass(6 * time.Second)
			assert.Empty(t, w.hold())
			w.fail(nil)
			w.pass(6 * time.Second)
			assert.Empty(t, w.hold())
		}
	})
}

// An answer that does not refuse ends the wait for a permission.
func TestContentThatCannotBeReadIsNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil))
		w.set(tls, "2")
		w.pass(time.Second)
		refused := w.State("ns", proxy).Hold
		require.NotNil(t, refused)
		assert.False(t, refused.Refused.IsZero(), "the time of the refusal is known")
		w.fail(errors.New("no answer"))
		w.pass(time.Minute)
		unread := w.State("ns", proxy).Hold
		require.NotNil(t, unread)
		assert.True(t, unread.NotReadYet, "the content has not been read")
		assert.Zero(t, unread.Refused, "a read without an answer is not refused")
		assert.Contains(t, unread.Reason, "no answer")
	})
}
