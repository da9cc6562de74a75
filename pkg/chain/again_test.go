package chain_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Each digest that is refused waits to be written again. Another digest is written at once, and takes the place of the wait.
func TestRefusedDigestsOfAnObjectAreRepeatedAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(apierrors.NewForbidden(proxies.GroupResource(), "p", errors.New("denied")))
		w.pass(time.Minute)
		for n := range 5 {
			w.set(tls, fmt.Sprint("edit ", n))
			w.pass(time.Second)
		}
		before := w.writes.Load()
		w.pass(time.Minute + 25*time.Second)
		assert.Equal(t, before+3, w.writes.Load(), "after 10 s, 20 s and 40 s")
		before = w.writes.Load()
		w.pass(time.Hour)
		assert.LessOrEqual(t, w.writes.Load(), before+13, "every 5 minutes")
		w.refuse(nil)
		w.pass(6 * time.Minute)
		assert.Zero(t, w.unpublished(), "it does not give up")
	})
}

// A writer that writes the object again and again without the digest is answered by one write.
func TestManyEventsWithoutTheDigestRestoreItOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPublishing(t)
		w.graph()
		w.pass(time.Second)
		w.keep()
		w.pass(time.Minute)
		before := w.writes.Load()
		for range 12 {
			w.strip()
			w.pass(500 * time.Millisecond)
		}
		w.pass(5 * time.Second)
		assert.Equal(t, before+1, w.writes.Load())
		w.pass(9 * time.Second)
		assert.Equal(t, before+1, w.writes.Load(), "no other write was waiting")
		w.strip()
		w.pass(19 * time.Second)
		assert.Equal(t, before+1, w.writes.Load(), "it was removed twice: the pause is 20 s now")
		w.pass(2 * time.Second)
		assert.Equal(t, before+2, w.writes.Load())
	})
}
