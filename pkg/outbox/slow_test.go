package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A namespace stays slow until a request of it is answered in time, whatever has left the outbox meanwhile.
func TestNamespaceStaysSlow(t *testing.T) {
	t.Parallel()
	const namespaces = 2 * underWay
	put := func(o *Outbox, name string, life time.Duration) {
		for n := range namespaces {
			m := message(fmt.Sprint("slow", n), name)
			m.Life = life
			o.Put(m)
		}
	}
	t.Run("its only Event was written", func(t *testing.T) {
		t.Parallel()
		a := &api{answer: func(context.Context, *eventsv1.Event, int) error {
			<-time.After(slowAttempt)
			return nil
		}}
		run(t, a, func(t *testing.T, o *Outbox) {
			t.Helper()
			put(o, "a", time.Hour)
			pass(time.Minute)
			assert.Zero(t, o.Waiting())
			put(o, "b", time.Hour)
			synctest.Wait()
			now, _ := a.load()
			assert.Equal(t, slowUnderWay, now)
			a.answers(nil)
			pass(time.Minute)
			put(o, "c", time.Hour)
			synctest.Wait()
			assert.Empty(t, o.queues, "its last request was answered at once")
		})
	})
	t.Run("the life of an Event has ended", func(t *testing.T) {
		t.Parallel()
		a := &api{answer: func(ctx context.Context, _ *eventsv1.Event, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		run(t, a, func(t *testing.T, o *Outbox) {
			t.Helper()
			put(o, "lasts", time.Hour)
			put(o, "ends", time.Minute)
			pass(time.Minute)
			for range 600 {
				now, _ := a.load()
				assert.LessOrEqual(t, now, slowUnderWay)
				pass(time.Second)
			}
			assert.Equal(t, namespaces, o.Waiting())
		})
	})
}

// A namespace that was slow and is deleted is forgotten.
func TestSlowNamespaceIsForgottenWhenItIsGone(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, event *eventsv1.Event, _ int) error {
		<-time.After(slowAttempt)
		gone := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, event.Name, errors.New("the namespace is terminated"))
		gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return gone
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		o.Put(message("shop", "a"))
		pass(time.Minute)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
	})
}

// Nothing says that a namespace without Events is answered in time again, or that it is gone.
func TestNamespaceThatWasSlowLongAgoIsForgotten(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(context.Context, *eventsv1.Event, int) error {
		<-time.After(slowAttempt)
		return nil
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		o.Put(message("first", "a"))
		pass(slowFor)
		o.Put(message("second", "b"))
		pass(slowAttempt - 1)
		assert.True(t, knows(o, "first"), "nothing has looked")
		pass(1)
		assert.False(t, knows(o, "first"), "its namespace was slow more than the limit ago")
		assert.True(t, knows(o, "second"), "its namespace was slow within the limit")
		pass(slowFor - slowAttempt - 1)
		o.Put(message("third", "c"))
		pass(slowAttempt)
		assert.True(t, knows(o, "second"), "its namespace was slow again within the limit")
	})
}

// knows reports whether there is a queue of a namespace. The next to change that may be a goroutine that waits for a timer, so that only the
// lock orders the two.
func knows(o *Outbox, namespace string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.queues[namespace]
	return known
}
