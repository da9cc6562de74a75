package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
)

// A namespace whose writes hang delays only itself, and there new Events come before those that have failed.
func TestHangingNamespaceDelaysOnlyItself(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(ctx context.Context, event *eventsv1.Event, _ int) error {
		if event.Namespace != "hangs" {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		for n := range 40 {
			o.Put(message("hangs", fmt.Sprint("h", n)))
		}
		synctest.Wait()
		assert.ElementsMatch(t, []string{"h0", "h1"}, a.created(), "two at a time")
		o.Put(r.of(message("shop", "a")))
		synctest.Wait()
		assert.Equal(t, Created, r.get("a"))
		pass(attemptLimit)
		assert.Equal(t, []string{"h2"}, a.created()[3:], "an attempt ends; one at a time where they take long")
		pass(4 * attemptLimit)
		written := a.created()[4:]
		assert.Len(t, written, 4)
		assert.Subset(t, written, []string{"h3", "h4", "h5"}, "new Events come before those that have failed")
		assert.Subset(t, []string{"h0", "h1"}, written[:1], "but these have their share")
		_, most := a.load()
		assert.LessOrEqual(t, most, 3)
	})
}

// However many namespaces hang, the Events of another one wait for one attempt of each at most, also where each of them has only one
// Event. One that answers again has its share again.
func TestHangingNamespacesHoldUpNoOther(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ hanging, each int }{{underWay / underWayInOne, 5}, {2 * underWay, 5}, {200, 1}} {
		t.Run(fmt.Sprint(tc.hanging, " with ", tc.each), func(t *testing.T) {
			t.Parallel()
			a := &api{answer: func(ctx context.Context, event *eventsv1.Event, _ int) error {
				if event.Namespace == "good" {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			run(t, a, func(t *testing.T, o *Outbox) {
				t.Helper()
				for n := range tc.hanging {
					for m := range tc.each {
						o.Put(message(fmt.Sprint("hangs", n), fmt.Sprintf("h%d-%d", n, m)))
					}
				}
				pass(3 * time.Minute)
				r := &results{}
				for n := range 300 {
					o.Put(r.of(message("good", fmt.Sprint("g", n))))
				}
				pass(attemptLimit)
				for n := range 300 {
					assert.Equal(t, Created, r.get(fmt.Sprint("g", n)))
				}
				now, _ := a.load()
				assert.Equal(t, slowUnderWay, now, "the others go on trying")
				a.answers(nil)
				pass(10 * time.Minute)
				assert.Zero(t, o.Waiting())
				assert.Zero(t, o.slowInFlight)
				assert.Empty(t, o.queues)
			})
		})
	}
}

// Of one namespace a bounded number of Warnings waits, each for another subject.
func TestWarningsOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(context.Context, *eventsv1.Event, int) error { return errors.New("away") }}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		for n := range topicsInOne + 1 {
			m := r.of(message("shop", fmt.Sprint("w", n)))
			m.Subject, m.Topic = fmt.Sprint(n), "Failed"
			o.Put(m)
		}
		other := r.of(message("cart", "other"))
		other.Topic = "Failed"
		o.Put(other)
		assert.Equal(t, topicsInOne+1, o.Waiting())
		assert.Equal(t, Dropped, r.get(fmt.Sprint("w", topicsInOne)))
		assert.Empty(t, r.get("w0"))
		pass(0) // no attempt is under way
		again := message("shop", "again")
		again.Subject, again.Topic = "0", "Failed"
		o.Put(r.of(again))
		assert.Empty(t, r.get("again"), "it takes the place of an earlier one")
		a.answers(nil)
		pass(time.Hour)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
		assert.Equal(t, Created, r.get("other"))
	})
}

// Of one namespace a bounded number of messages without a Topic waits, each for another subject. Beyond it, the oldest one goes.
func TestMessagesOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(ctx context.Context, _ *eventsv1.Event, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		for _, name := range []string{"a", "b"} {
			o.Put(r.of(message("shop", name)))
			o.Put(r.of(message("cart", name+" of cart")))
		}
		synctest.Wait()
		warning := r.of(message("shop", "warning"))
		warning.Topic, warning.Delay = "Failed", 10*time.Second
		o.Put(warning)
		const more = 10
		last := untitledInOne - underWayInOne + more - 1
		for n := range last + 1 {
			o.Put(r.of(message("shop", fmt.Sprint(n))))
		}
		assert.Equal(t, untitledInOne+1+2, o.Waiting(), "neither a Warning nor another namespace counts")
		o.mu.Lock()
		for n, i := range o.queues["shop"].first {
			dropped := n < more
			assert.Equal(t, dropped, r.get(fmt.Sprint(n)) == Dropped)
			assert.Equal(t, dropped, i.Event == nil, "what is dropped takes no memory")
		}
		o.mu.Unlock()
		a.answers(nil)
		pass(time.Hour)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
		for _, name := range []string{"a", "b", "a of cart", "b of cart", "warning", fmt.Sprint(more), fmt.Sprint(last)} {
			assert.Equal(t, Created, r.get(name), name)
		}
	})
}

// A message that is dropped while it waits for its next attempt takes no memory until then.
func TestDroppedMessageThatWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(context.Context, *eventsv1.Event, int) error { return errors.New("away") }}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		for n := range perSubject + beyond + 5 {
			m := r.of(message("shop", fmt.Sprint(n)))
			m.Subject = "cart"
			o.Put(m)
			synctest.Wait()
		}
		o.mu.Lock()
		for _, i := range o.later {
			assert.Equal(t, i.gone, i.Event == nil)
		}
		o.mu.Unlock()
		a.answers(nil)
		pass(10 * time.Minute)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
		for n := range perSubject + beyond + 5 {
			want := Created
			if n < 5 {
				want = Dropped
			}
			assert.Equal(t, want, r.get(fmt.Sprint(n)))
		}
	})
}

// A namespace is forgotten when nothing of it waits, also where its first attempts did not wait for their quiet period.
func TestNamespacesAreForgotten(t *testing.T) {
	t.Parallel()
	runWith(t, &api{}, quietPeriod, func(t *testing.T, o *Outbox) {
		t.Helper()
		for n := range 10 {
			for m := range 2 {
				e := message(fmt.Sprint("n", n), fmt.Sprint("e", m))
				e.Subject = "one"
				o.Put(e)
			}
		}
		pass(time.Minute)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
	})
}

// Messages with a Topic and without one keep their namespace, however many there are of each.
func TestNamespaceIsKeptWhileMessagesWait(t *testing.T) {
	t.Parallel()
	a := &api{}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		warning, later := message("shop", "warning"), message("shop", "later")
		warning.Topic, warning.Delay, later.Delay = "Failed", time.Minute, time.Minute
		o.Put(warning)
		o.Put(later)
		o.Put(message("shop", "reloaded"))
		pass(0)
		assert.Equal(t, []string{"reloaded"}, a.created())
		pass(time.Minute)
		assert.ElementsMatch(t, []string{"reloaded", "warning", "later"}, a.created())
		assert.Empty(t, o.queues)
	})
}

func TestEventsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	a := &api{}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		answer := make(chan struct{})
		a.answers(func(context.Context, *eventsv1.Event, int) error { <-answer; return nil })
		for n := range 100 {
			o.Put(message(fmt.Sprint("n", n%25), fmt.Sprint("e", n)))
		}
		synctest.Wait()
		now, _ := a.load()
		assert.Equal(t, underWay, now)
		close(answer)
		pass(0)
		_, most := a.load()
		assert.Equal(t, underWay, most)
		assert.Zero(t, o.Waiting())
		assert.Empty(t, o.queues)
	})
}

func TestMessagesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	r, a := &results{}, &api{}
	a.answer = func(context.Context, *eventsv1.Event, int) error { return errors.New("away") }
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		put := func(subject string, from, n int) {
			for n := range n {
				m := r.of(message("shop", fmt.Sprint(subject, from+n)))
				m.Subject = subject
				o.Put(m)
			}
			synctest.Wait()
		}
		warning := message("shop", "warning")
		warning.Subject, warning.Topic = "hot", "Failed"
		o.Put(warning)
		put("hot", 0, perSubject+beyond)
		assert.Equal(t, 1+perSubject+beyond, o.Waiting(), "a Warning does not count")
		assert.Empty(t, r.get("hot0"))
		put("cart", 0, perSubject)
		assert.Equal(t, 1+2*perSubject+beyond, o.Waiting(), "each subject has its own share")
		put("cart", perSubject, 1)
		assert.Equal(t, Dropped, r.get("cart0"), "beyond it, its oldest goes")
		put("hot", perSubject+beyond, 1)
		assert.Equal(t, Dropped, r.get("hot0"))
		assert.Empty(t, r.get("hot1"))
		assert.Equal(t, 1+2*perSubject+beyond, o.Waiting())

		a.answers(nil)
		pass(10 * time.Minute)
		assert.Zero(t, o.Waiting())
		assert.Zero(t, o.surplus)
		for n := range perSubject {
			assert.Equal(t, Created, r.get(fmt.Sprint("cart", n+1)))
		}
		for n := range perSubject + beyond {
			assert.Equal(t, Created, r.get(fmt.Sprint("hot", n+1)))
		}
	})
}

// A leader that stops lets the requests end that are under way, for a moment.
func TestStopLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes time.Duration
		want  Outcome
		after time.Duration
	}{
		"soon":     {takes: 400 * time.Millisecond, want: Created, after: stopGrace},
		"too late": {takes: time.Minute, after: stopGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &results{}
				o := newOutbox(&api{answer: func(ctx context.Context, _ *eventsv1.Event, _ int) error {
					select {
					case <-time.After(tc.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}})
				o.quietPeriod = 0
				for n := range 5 {
					o.Put(r.of(message("shop", fmt.Sprint(n))))
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					assert.NoError(t, o.Start(ctx))
				}()
				synctest.Wait()
				stopped := time.Now()
				cancel()
				<-ended
				assert.Equal(t, tc.after, time.Since(stopped))
				assert.Equal(t, tc.want, r.get("0"))
				assert.Equal(t, tc.want, r.get("3"), "two go on when two have ended")
				assert.Empty(t, r.get("4"), "what waits is for the next leader")
			})
		})
	}
}
