package outbox

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var resource = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

// api is an API server for Events. answer decides on each attempt.
type api struct {
	answer func(ctx context.Context, event *eventsv1.Event, attempt int) error

	mu       sync.Mutex
	attempts map[string]int
	order    []string
	counted  []string
	// reporters are the answers to who has created an Event; an empty one is an error.
	reporters []string
	asked     int
	inFlight  int
	most      int
}

func (a *api) Create(ctx context.Context, event *eventsv1.Event) error {
	a.mu.Lock()
	if a.attempts == nil {
		a.attempts = map[string]int{}
	}
	a.attempts[event.Name]++
	attempt := a.attempts[event.Name]
	a.order = append(a.order, event.Name)
	a.inFlight++
	a.most = max(a.most, a.inFlight)
	answer := a.answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.inFlight--
	}()
	if answer == nil {
		return nil
	}
	return answer(ctx, event, attempt)
}

func (a *api) Count(_ context.Context, event *eventsv1.Event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted = append(a.counted, event.Name)
	if len(a.counted) == 1 && event.Name == "gone" {
		return apierrors.NewConflict(resource, event.Name, errors.New("the Event was just deleted"))
	}
	return nil
}

func (a *api) Reporter(context.Context, *eventsv1.Event) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if reporter := a.reporters[a.asked-1]; reporter != "" {
		return reporter, nil
	}
	return "", errors.New("connection reset")
}

// tries is how often an Event was written.
func (a *api) tries(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attempts[name]
}

// load is how many requests are under way, and were at most.
func (a *api) load() (now, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight, a.most
}

// answers changes the answer.
func (a *api) answers(answer func(ctx context.Context, event *eventsv1.Event, attempt int) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *api) repeated() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.counted)
}

func (a *api) created() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.order)
}

// results collects what became of messages.
type results struct {
	mu  sync.Mutex
	all map[string]Outcome
}

func (r *results) of(m Message) Message {
	name := m.Event.Name
	m.Done = func(outcome Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.all == nil {
			r.all = map[string]Outcome{}
		}
		if _, twice := r.all[name]; twice {
			outcome = "done twice"
		}
		r.all[name] = outcome
	}
	return m
}

func (r *results) get(name string) Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[name]
}

func message(namespace, name string) Message {
	return Message{
		Event:   &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		Subject: namespace + "/" + name, Life: time.Hour,
	}
}

func newOutbox(w Writer) *Outbox { return New(w, prometheus.NewRegistry(), logr.Discard()) }

// run starts an outbox that waits for no quiet period in a bubble of fake time.
func run(t *testing.T, a *api, f func(t *testing.T, o *Outbox)) {
	t.Helper()
	runWith(t, a, 0, f)
}

func runWith(t *testing.T, a *api, quietPeriod time.Duration, f func(t *testing.T, o *Outbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(a)
		o.quietPeriod = quietPeriod
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.NoError(t, o.Start(ctx))
		}()
		f(t, o)
		cancel()
		<-ended
	})
}

// pass lets fake time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time is fake
	synctest.Wait()
}

func TestFailedEventIsWrittenAgain(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, _ *eventsv1.Event, attempt int) error {
		if attempt < 4 {
			return apierrors.NewInternalError(errors.New("away"))
		}
		return nil
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r, failed := &results{}, atomic.Int32{}
		m := r.of(message("shop", "a"))
		m.Failed = func(error) { failed.Add(1) }
		o.Put(m)
		synctest.Wait()
		assert.Equal(t, 1, a.tries("a"))
		assert.Equal(t, 1, o.Waiting())
		pass(time.Second - 1)
		assert.Equal(t, 1, a.tries("a"), "not at once")
		pass(1)
		assert.Equal(t, 2, a.tries("a"))
		pass(2 * time.Second)
		assert.Equal(t, 3, a.tries("a"), "later each time")
		pass(4 * time.Second)
		assert.Equal(t, Created, r.get("a"))
		assert.EqualValues(t, 3, failed.Load())
		assert.Zero(t, o.Waiting())
		pass(time.Hour)
		assert.Equal(t, 4, a.tries("a"), "it is done")
		assert.Empty(t, o.queues)
		assert.Empty(t, o.subjects)
	})
}

func TestAttemptsEndWithTheLifeOfAMessage(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(context.Context, *eventsv1.Event, int) error {
		return apierrors.NewForbidden(resource, "", errors.New("no"))
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		o.Put(r.of(message("shop", "a")))
		pass(30 * time.Minute)
		assert.InDelta(t, 35, a.tries("a"), 1, "the longest wait is a minute")
		pass(31 * time.Minute)
		assert.Equal(t, Dropped, r.get("a"))
		assert.Zero(t, o.Waiting())
	})
}

func TestAnswersThatEndTheAttempts(t *testing.T) {
	t.Parallel()
	terminating := apierrors.NewForbidden(resource, "", errors.New("going"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	proxied := apierrors.NewGenericServerResponse(http.StatusNotFound, "create", resource, "", "page not found", 0, true)
	denied := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: `admission webhook "w" denied the request: no`}}
	}
	for name, tc := range map[string]struct {
		answer  error
		want    Outcome
		waiting int
	}{
		"the Event exists":            {apierrors.NewAlreadyExists(resource, "a"), Exists, 0},
		"the namespace is gone":       {apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"), Dropped, 0},
		"the namespace is going":      {terminating, Dropped, 0},
		"a proxy does not know a way": {proxied, "", 1},
		"a webhook denies it by 404":  {denied(http.StatusNotFound, ""), "", 1},
		"a webhook denies it by 409":  {denied(http.StatusConflict, metav1.StatusReasonAlreadyExists), "", 1},
		"not allowed":                 {apierrors.NewForbidden(resource, "", errors.New("no")), "", 1},
		"no answer":                   {errors.New("connection refused"), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, &api{answer: func(context.Context, *eventsv1.Event, int) error { return tc.answer }}, func(t *testing.T, o *Outbox) {
				t.Helper()
				r := &results{}
				o.Put(r.of(message("shop", "a")))
				synctest.Wait()
				assert.Equal(t, tc.want, r.get("a"))
				assert.Equal(t, tc.waiting, o.Waiting())
			})
		})
	}
}

// An attempt without an answer has stored the Event or not: another process may have created it meanwhile.
func TestEventOfALostAnswer(t *testing.T) {
	t.Parallel()
	reset, refused := errors.New("connection reset"), apierrors.NewForbidden(resource, "a", errors.New("no"))
	for name, tc := range map[string]struct {
		first     error
		repeat    bool
		reporters []string
		want      Outcome
		asked     int
		counted   int
		why       string
	}{
		"this process has stored it":     {first: reset, reporters: []string{"me"}, want: Created, asked: 1},
		"another process has created it": {first: reset, reporters: []string{"other"}, want: Exists, asked: 1},
		"a failed server has stored it": {
			first: apierrors.NewInternalError(errors.New("away")), reporters: []string{"me"}, want: Created, asked: 1,
		},
		"who has created it is read again": {first: reset, reporters: []string{"", "me"}, want: Created, asked: 2, why: "the read failed"},
		"every attempt was refused":        {first: refused, want: Exists, why: "it can only be that of another process"},
		"the message is repeated":          {first: reset, repeat: true, want: Exists, counted: 1, why: "who counts it knows whether it is this one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{reporters: tc.reporters, answer: func(_ context.Context, _ *eventsv1.Event, attempt int) error {
				if attempt == 1 {
					return tc.first
				}
				return apierrors.NewAlreadyExists(resource, "a")
			}}
			run(t, a, func(t *testing.T, o *Outbox) {
				t.Helper()
				r := &results{}
				m := r.of(message("shop", "a"))
				m.Repeat, m.Event.ReportingInstance = tc.repeat, "me"
				o.Put(m)
				pass(time.Minute)
				assert.Equal(t, tc.want, r.get("a"), tc.why)
				assert.Equal(t, tc.asked, a.asked)
				assert.Len(t, a.repeated(), tc.counted)
			})
		})
	}
}

func TestRepeatedEventIsCounted(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, event *eventsv1.Event, _ int) error {
		return apierrors.NewAlreadyExists(resource, event.Name)
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		m := r.of(message("shop", "gone"))
		m.Repeat = true
		o.Put(m)
		o.Put(r.of(message("shop", "b")))
		pass(time.Minute)
		assert.Equal(t, []string{"gone", "gone"}, a.repeated(), "a failure is tried again; what is not repeated is not counted")
		assert.Equal(t, Exists, r.get("gone"))
		assert.Equal(t, Exists, r.get("b"))
	})
}

func TestRepeatedEventThatGoesBeforeItIsCountedIsCreated(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, event *eventsv1.Event, attempt int) error {
		if attempt == 1 {
			return apierrors.NewAlreadyExists(resource, event.Name)
		}
		return nil
	}}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		m := r.of(message("shop", "gone"))
		m.Repeat = true
		o.Put(m)
		pass(time.Minute)
		assert.Equal(t, Created, r.get("gone"))
		assert.Len(t, a.repeated(), 1)
	})
}

func TestLastMessageOfATopicReplacesOneThatWaits(t *testing.T) {
	t.Parallel()
	a := &api{}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		warning := func(name, topic string, delay time.Duration) Message {
			m := message("shop", name)
			m.Subject, m.Topic, m.Delay = "cart", topic, delay
			return m
		}
		o.Put(warning("a", "Failed", time.Minute))
		o.Put(warning("b", "Failed", time.Minute))
		o.Put(warning("c", "Missing", time.Minute))
		assert.Equal(t, 2, o.Waiting())
		pass(time.Minute - 1)
		assert.Empty(t, a.created())
		pass(1)
		assert.ElementsMatch(t, []string{"b", "c"}, a.created())
		o.Put(warning("d", "Failed", 0))
		synctest.Wait()
		assert.Equal(t, []string{"d"}, a.created()[2:], "the one before is not waiting any more")
	})
}

func TestDelayedMessageIsDroppedWhereItDoesNotApplyAnyMore(t *testing.T) {
	t.Parallel()
	a := &api{}
	run(t, a, func(t *testing.T, o *Outbox) {
		t.Helper()
		r := &results{}
		put := func(name string, delay time.Duration, valid bool) {
			m := r.of(message("shop", name))
			m.Delay, m.Valid = delay, func() bool { return valid }
			o.Put(m)
		}
		put("at once", 0, false)
		put("passed", time.Minute, false)
		put("lasts", time.Minute, true)
		pass(time.Minute)
		assert.Equal(t, Created, r.get("at once"), "what happened is reported")
		assert.Equal(t, Dropped, r.get("passed"))
		assert.Equal(t, Created, r.get("lasts"))
	})
}
