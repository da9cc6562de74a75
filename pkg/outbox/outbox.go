package outbox

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
)

// Writer is the API server, as far as Events are concerned.
type Writer interface {
	// Create creates an Event.
	Create(ctx context.Context, event *eventsv1.Event) error
	// Count counts an Event on the one of its name that exists; a conflict if that has gone meanwhile.
	Count(ctx context.Context, event *eventsv1.Event) error
	// Reporter returns the reporting instance of the Event of this name that exists; a conflict if that has gone meanwhile.
	Reporter(ctx context.Context, event *eventsv1.Event) (string, error)
}

const (
	// underWay is how many Events are written at a time, underWayInOne in one namespace: a change that reloads hundreds of
	// workloads must not put as many requests beside its reloads.
	underWay, underWayInOne = 16, 2
	// slowUnderWay is how many Events of slow namespaces are written at a time, one in each: those whose last attempt took slowAttempt. So
	// namespaces whose Events hang, however many, hold up those of others for one attempt.
	slowUnderWay, slowAttempt = 8, 2 * time.Second
	// slowFor is how long a namespace without messages is kept as slow.
	slowFor = 5 * time.Minute
	// attemptLimit is how long one attempt may take.
	attemptLimit = 10 * time.Second
	// firstWait and longestWait are the waits between attempts; each one doubles.
	firstWait, longestWait = time.Second, time.Minute
	// perSubject is how many messages without a Topic may wait for each subject, and beyond how many more may wait for all subjects
	// together: a workload that reloads again and again while Events are refused needs more than others. The last-reload
	// annotation, which a new leader has, names six reloads.
	perSubject, beyond = 8, 1000
	// topicsInOne is how many messages with a Topic may wait for one namespace: a tenant that makes ever new subjects of which none can
	// be reported must not take the memory of all.
	topicsInOne = 5000
	// untitledInOne is how many messages without a Topic may wait for one namespace, for the same reason. Beyond it, its oldest is
	// dropped.
	untitledInOne = 10_000
	// quietPeriod is how long no message must have come for a namespace before its first attempts are made: a change that reloads
	// thousands of workloads has its Events written after its reloads, not between them. longestDelay bounds the wait.
	quietPeriod, longestDelay = 100 * time.Millisecond, 30 * time.Second
	// stopGrace is how long requests that are under way may take when the outbox stops.
	stopGrace = time.Second
)

// Outbox writes messages at its own pace. It is safe for concurrent use.
type Outbox struct {
	writer      Writer
	failures    *failures
	wake        chan struct{}
	quietPeriod time.Duration

	mu     sync.Mutex
	queues map[string]*namespaceQueue
	turns  []*namespaceQueue
	// parked are slow queues that wait until fewer of them have an attempt under way.
	parked                 []*namespaceQueue
	delayed                delayed
	later                  later
	subjects               map[string][]*item
	inFlight, slowInFlight int
	waiting                int
	// surplus is how many of the messages that wait are beyond perSubject.
	surplus int
}

// New returns an Outbox. It accepts messages at once and writes them once it is started. It registers its metrics, and logs once a minute
// that attempts fail.
func New(writer Writer, metrics prometheus.Registerer, log logr.Logger) *Outbox {
	o := &Outbox{
		writer: writer, failures: newFailures(log), wake: make(chan struct{}, 1), quietPeriod: quietPeriod,
		queues: map[string]*namespaceQueue{}, subjects: map[string][]*item{},
	}
	metrics.MustRegister(o.failures.attempts, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_pending_events",
		Help: "Events that are due and not written yet.",
	}, func() float64 { return float64(o.pending()) }))
	return o
}

// Put takes a message. It never blocks.
func (o *Outbox) Put(m Message) {
	o.mu.Lock()
	dropped := o.put(m)
	o.mu.Unlock()
	if dropped != nil && dropped.Done != nil {
		dropped.Done(Dropped)
	}
	o.notify()
}

// put returns the message that is dropped, if any: the new one, or another one for it.
func (o *Outbox) put(m Message) (dropped *Message) {
	now := time.Now()
	waiting, l := o.subjects[m.Subject], o.namespaceQueue(m.Event.Namespace)
	switch {
	case m.Topic == "":
		dropped = o.dropOldest(waiting, l)
	case replaces(waiting, m, now):
		return nil
	case l.withTopic >= topicsInOne:
		return &m
	}
	i := &item{Message: m, ends: now.Add(m.Life), due: now.Add(m.Delay), first: now.Add(m.Delay), delayed: m.Delay > 0}
	o.subjects[m.Subject] = append(o.subjects[m.Subject], i)
	o.waiting++
	l.add(i)
	if m.Topic == "" && withoutTopic(o.subjects[m.Subject]) > perSubject {
		o.surplus++
	}
	o.schedule(i, now)
	if len(o.subjects[m.Subject]) > 1 {
		l.latest = now // a subject of which several messages wait has no place for many more
		o.queue(l, now)
	}
	return dropped
}

// replaces puts a message in the place of the one that waits with its Topic, and reports whether there was one.
func replaces(waiting []*item, m Message, now time.Time) bool {
	for _, i := range waiting {
		if i.Topic == m.Topic && !i.inFlight {
			i.Message, i.ends, i.attempts = m, now.Add(m.Life), 0
			return true
		}
	}
	return false
}

// dropOldest removes the oldest message without a Topic of a subject or of a namespace that may have no further one.
func (o *Outbox) dropOldest(waiting []*item, l *namespaceQueue) *Message {
	var oldest *item
	switch {
	case withoutTopic(waiting) >= perSubject && o.surplus >= beyond:
		if n := slices.IndexFunc(waiting, func(i *item) bool { return i.Topic == "" && !i.inFlight }); n >= 0 {
			oldest = waiting[n]
		}
	case l.withoutTopic.Len() >= untitledInOne:
		oldest = l.oldest()
	}
	if oldest == nil {
		return nil
	}
	dropped := oldest.Message
	o.remove(oldest)
	oldest.Message = Message{} // the item may be queued for long
	return &dropped
}

// withoutTopic returns how many messages have no Topic.
func withoutTopic(items []*item) int {
	count := 0
	for _, i := range items {
		if i.Topic == "" {
			count++
		}
	}
	return count
}

// remove takes an item out. Where it is queued it is passed over.
func (o *Outbox) remove(i *item) {
	i.gone = true
	o.waiting--
	o.queues[i.Event.Namespace].remove(i)
	if i.Topic == "" && withoutTopic(o.subjects[i.Subject]) > perSubject {
		o.surplus--
	}
	rest := slices.DeleteFunc(o.subjects[i.Subject], func(other *item) bool { return other == i })
	if len(rest) == 0 {
		delete(o.subjects, i.Subject)
		return
	}
	o.subjects[i.Subject] = rest
}

// schedule queues an item in its namespace, or for later.
func (o *Outbox) schedule(i *item, now time.Time) {
	if i.due.After(now) {
		heap.Push(&o.later, i)
		return
	}
	l := o.queues[i.Event.Namespace]
	l.put(i, now, o.quietPeriod)
	o.queue(l, now)
}

// namespaceQueue returns the queue of a namespace.
func (o *Outbox) namespaceQueue(namespace string) *namespaceQueue {
	l := o.queues[namespace]
	if l == nil {
		l = &namespaceQueue{namespace: namespace}
		o.queues[namespace] = l
	}
	return l
}

// queue gives a queue its turn, if it can use one, or looks at it again when its quiet period may be over.
func (o *Outbox) queue(l *namespaceQueue, now time.Time) {
	switch {
	case l.queued || l.empty() || l.inFlight >= l.limit():
	case l.ready(now):
		l.queued = true
		o.turns = append(o.turns, l)
	case !l.waiting:
		l.waiting, l.look = true, l.due()
		heap.Push(&o.delayed, l)
	}
}

// Waiting returns how many messages are in the outbox.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

// pending returns how many messages are in the outbox whose first attempt is due. It was due, too, where another message has replaced one
// that has failed.
func (o *Outbox) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	count, now := o.waiting, time.Now()
	for _, i := range o.later {
		if !i.gone && i.first.After(now) {
			count--
		}
	}
	return count
}

func (o *Outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
