package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Events of a burst of reloads are written after it, and those of other namespaces do not wait for it.
func TestEventsWaitForAQuietPeriodOfTheirNamespace(t *testing.T) {
	t.Parallel()
	a := &api{}
	runWith(t, a, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		o.Put(message("quiet", "c"))
		for n := range 20 {
			o.Put(message("shop", fmt.Sprint(n)))
			pass(quietPeriod - 1)
		}
		assert.Equal(t, []string{"c"}, a.created(), "the burst goes on")
		pass(1)
		assert.Len(t, a.created(), 21, "the quiet period is over")
		assert.Empty(t, o.delayed)
		assert.Empty(t, o.lanes)
	})
}

// Where reloads never end, their Events wait for a bounded time.
func TestEventsDoNotWaitForAQuietPeriodWithoutEnd(t *testing.T) {
	t.Parallel()
	a := &api{}
	runWith(t, a, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		started, n := time.Now(), 0
		put := func(until time.Duration) {
			for ; time.Since(started) < until; n++ {
				o.Put(message("shop", fmt.Sprint(n)))
				pass(quietPeriod / 2)
			}
		}
		put(longestDelay)
		assert.Len(t, a.created(), n, "those of half a minute are written at once")
		put(longestDelay + quietPeriod)
		assert.Less(t, len(a.created()), n, "the next ones wait for a quiet period again")
	})
}

// Few messages of one subject may wait, so that a workload that reloads again and again loses none by waiting.
func TestSecondMessageOfASubjectEndsTheWait(t *testing.T) {
	t.Parallel()
	r, a := &results{}, &api{}
	runWith(t, a, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		for n := range 10 * perSubject {
			m := r.of(message("shop", fmt.Sprint(n)))
			m.Subject = "cart"
			o.Put(m)
			pass(quietPeriod / 5)
		}
		pass(quietPeriod)
		assert.Len(t, a.created(), 10*perSubject)
		for n := range 10 * perSubject {
			assert.Equal(t, Created, r.get(fmt.Sprint(n)))
		}
	})
}

// Retries, which have waited before, wait for no quiet period.
func TestRetriesDoNotWaitForAQuietPeriod(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, event *eventsv1.Event, attempt int) error {
		if event.Name == "again" && attempt == 1 {
			return apierrors.NewInternalError(errors.New("away"))
		}
		return nil
	}}
	runWith(t, a, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		o.Put(message("shop", "again"))
		pass(quietPeriod)
		for n := range 2 * int(firstWait/quietPeriod) {
			o.Put(message("shop", fmt.Sprint(n)))
			pass(quietPeriod - 1)
		}
		assert.Equal(t, []string{"again", "again"}, a.created())
	})
}
