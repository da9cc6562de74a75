package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		assert.Empty(t, o.queues)
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

// failAgainOnce fails the first attempt of the message "again".
func failAgainOnce(_ context.Context, event *eventsv1.Event, attempt int) error {
	if event.Name == "again" && attempt == 1 {
		return apierrors.NewInternalError(errors.New("away"))
	}
	return nil
}

// Retries, which have waited before, wait for no quiet period.
func TestRetriesDoNotWaitForAQuietPeriod(t *testing.T) {
	t.Parallel()
	a := &api{answer: failAgainOnce}
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

// A retry does not wait for the quiet period of one new message, and does not end it.
func TestRetryAndNewMessageOfANamespace(t *testing.T) {
	t.Parallel()
	a := &api{answer: failAgainOnce}
	runWith(t, a, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		o.Put(message("shop", "again"))
		pass(quietPeriod)
		pass(firstWait - 1)
		o.Put(message("shop", "new"))
		pass(1)
		assert.Equal(t, []string{"again", "again"}, a.created(), "the retry is due")
		pass(quietPeriod - 1)
		assert.Equal(t, []string{"again", "again", "new"}, a.created(), "the quiet period is over")
	})
}

// No other process writes the Events that only this one knows of: its end does not wait for a quiet period.
func TestEventsThatWaitForAQuietPeriodAreWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(_ context.Context, event *eventsv1.Event, _ int) error {
			<-time.After(10 * time.Millisecond)
			if event.Namespace == "refused" {
				return apierrors.NewInternalError(errors.New("away"))
			}
			return nil
		}}
		o := newOutbox(a)
		o.quietPeriod = quietPeriod
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Start(ctx) }()
		for n := range 3 * underWay {
			o.Put(message(fmt.Sprint("shop-", n), "reloaded"))
		}
		o.Put(message("refused", "reloaded"))
		later := message("shop-0", "later")
		later.Delay = time.Minute
		o.Put(later)
		synctest.Wait()
		require.Empty(t, a.created(), "the quiet period lasts")
		started := time.Now()
		stop()
		require.NoError(t, <-ended)
		assert.Less(t, time.Since(started), quietPeriod)
		assert.Equal(t, 3*underWay+1, a.tries("reloaded"), "one attempt each, also at what is refused")
		assert.Equal(t, 2, o.Waiting(), "that, and what is not due")
	})
}

// A server that does not answer holds up the end for a moment only.
func TestEndOfTheOutboxIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(ctx context.Context, _ *eventsv1.Event, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		o := newOutbox(a)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Start(ctx) }()
		for n := range 3 * underWay {
			o.Put(message(fmt.Sprint("shop-", n), "reloaded"))
		}
		synctest.Wait()
		started := time.Now()
		stop()
		require.NoError(t, <-ended)
		assert.LessOrEqual(t, time.Since(started), stopGrace)
	})
}
