package outbox

import (
	"container/heap"
	"context"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/backoff"
)

// Start writes messages until the context ends, and then makes the first attempts that still wait for a quiet period, as far as that is
// done in stopGrace. What waits longer is lost.
func (o *Outbox) Start(ctx context.Context) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var flights sync.WaitGroup
	defer flights.Wait()
	for {
		wait := o.begin(requests, &flights)
		timer := time.NewTimer(wait)
		select {
		case <-o.wake:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			stop := time.AfterFunc(stopGrace, cancel)
			o.flush(requests, &flights)
			flights.Wait()
			stop.Stop()
			return nil
		}
	}
}

// idle is how long Start waits where nothing is due; a message wakes it.
const idle = time.Hour

// begin starts the attempts that may be made now, and returns how long to wait for the next.
func (o *Outbox) begin(ctx context.Context, flights *sync.WaitGroup) time.Duration {
	for {
		i, wait := o.next()
		if i == nil {
			return wait
		}
		flights.Go(func() { o.attempt(ctx, i) })
	}
}

// flush makes the attempts that may be made now, without a wait for quiet periods, until none is under way or the context ends.
func (o *Outbox) flush(ctx context.Context, flights *sync.WaitGroup) {
	o.endQuietPeriods()
	for ctx.Err() == nil {
		o.begin(ctx, flights)
		if !o.busy() {
			return
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
		}
	}
}

func (o *Outbox) endQuietPeriods() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quietPeriod = 0
	now := time.Now()
	for _, l := range o.delayed {
		l.latest, l.look = now, now
	}
}

// busy reports whether an attempt is under way.
func (o *Outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.inFlight > 0
}

// next returns the item whose turn it is, or how long it takes until there may be one.
func (o *Outbox) next() (*item, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for len(o.later) > 0 && !o.later[0].due.After(now) {
		if i := heap.Pop(&o.later).(*item); !i.gone {
			o.schedule(i, now)
		}
	}
	for len(o.delayed) > 0 && !o.delayed[0].look.After(now) {
		l := heap.Pop(&o.delayed).(*namespaceQueue)
		l.waiting = false
		o.queue(l, now)
		o.forgetIdle(l, now)
	}
	for o.inFlight < underWay && len(o.turns) > 0 {
		l := o.turns[0]
		o.turns[0] = nil
		o.turns = o.turns[1:]
		if l.slow && o.slowInFlight >= slowUnderWay {
			o.parked = append(o.parked, l)
			continue
		}
		l.queued = false
		i, ok := l.take(now)
		if ok && !i.gone {
			o.beginAttempt(i, l)
			o.queue(l, now)
			return i, 0
		}
		o.queue(l, now)
		o.forgetIdle(l, now)
	}
	return nil, o.pause(now)
}

// beginAttempt counts an attempt that begins.
func (o *Outbox) beginAttempt(i *item, l *namespaceQueue) {
	i.inFlight, i.slow = true, l.slow
	l.inFlight++
	o.inFlight++
	if i.slow {
		o.slowInFlight++
	}
}

// pause is how long nothing is to be done without a message.
func (o *Outbox) pause(now time.Time) time.Duration {
	wait := idle
	if len(o.later) > 0 {
		wait = min(wait, o.later[0].due.Sub(now))
	}
	if len(o.delayed) > 0 {
		wait = min(wait, o.delayed[0].look.Sub(now))
	}
	return wait
}

// forgetIdle forgets a queue without items, unless it is slow: its next item would hold up others again.
func (o *Outbox) forgetIdle(l *namespaceQueue, now time.Time) {
	if l.idle() && !l.isSlow(now) && l.empty() && !l.waiting && !l.queued {
		delete(o.queues, l.namespace)
	}
}

// attempt writes an item, and puts it off where that fails.
func (o *Outbox) attempt(ctx context.Context, i *item) {
	err := error(nil)
	expired := !time.Now().Before(i.ends) || i.delayed && i.attempts == 0 && i.Valid != nil && !i.Valid()
	if !expired {
		err = o.write(ctx, i)
	}
	outcome := Dropped
	switch {
	case expired:
	case err != nil && apianswer.NamespaceGone(err):
		o.observe(i.Event.Namespace, 0) // it holds up no other one any more, and is to be forgotten
	case err == nil:
		outcome = Created
	case apianswer.AlreadyExists(err):
		outcome = Exists
	default:
		o.failures.add(err, i.Event)
		i.failed(err)
		i.unclear = i.unclear || apianswer.MayBeStored(err)
		o.endAttempt(i, true)
		return
	}
	o.endAttempt(i, false)
	i.done(outcome)
}

func (o *Outbox) write(ctx context.Context, i *item) error {
	begin := time.Now()
	defer func() { o.observe(i.Event.Namespace, time.Since(begin)) }()
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	err := o.writer.Create(ctx, i.Event)
	switch {
	case !apianswer.AlreadyExists(err):
		return err
	case i.Repeat:
		if counted := o.writer.Count(ctx, i.Event); counted != nil {
			return counted
		}
	case i.unclear:
		return o.createdBy(ctx, i.Event, err)
	}
	return err
}

// createdBy returns nil if an attempt without an answer has created the Event, exists if another process has.
func (o *Outbox) createdBy(ctx context.Context, event *eventsv1.Event, exists error) error {
	switch reporter, err := o.writer.Reporter(ctx, event); {
	case err != nil:
		return err
	case reporter == event.ReportingInstance:
		return nil
	default:
		return exists
	}
}

// observe takes in how long the requests of an attempt took. An attempt without a request says nothing about its namespace.
func (o *Outbox) observe(namespace string, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.queues[namespace]
	if l.slow = took >= slowAttempt; !l.slow {
		return
	}
	l.slowAt = time.Now()
	for _, other := range o.queues { // their namespaces may be gone
		o.forgetIdle(other, l.slowAt)
	}
}

// endAttempt ends an attempt; the item stays in the outbox to be tried again, or leaves it.
func (o *Outbox) endAttempt(i *item, again bool) {
	o.mu.Lock()
	defer o.notify()
	defer o.mu.Unlock()
	l := o.queues[i.Event.Namespace]
	l.inFlight--
	o.inFlight--
	i.inFlight = false
	if i.slow {
		o.slowInFlight--
		o.turns, o.parked = append(o.turns, o.parked...), nil
	}
	now := time.Now()
	if again {
		i.due = now.Add(backoff.Doubled(firstWait, longestWait, i.attempts))
		i.attempts++
		o.schedule(i, now)
	} else {
		o.remove(i)
	}
	o.queue(l, now)
	o.forgetIdle(l, now)
}
