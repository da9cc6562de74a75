package action

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// Close records and reports the outcome of a reconciliation, and returns when to look at the workload again.
func (a *Actions) Close(ctx context.Context, ended Outcome) reconcile.Result {
	return ended.close(ctx, a.base)
}

// Outcome is how the reconciliation of a workload ends. Callers return it; only Close closes it. nil means that the
// reconciliation goes on.
type Outcome interface {
	close(ctx context.Context, b *base) reconcile.Result
}

// Waiting is the outcome of a workload whose reconciliation must go on later. The zero value waits until an event, or a free slot for its
// writes, queues the workload.
type Waiting reconcile.Result

func (w Waiting) close(context.Context, *base) reconcile.Result { return reconcile.Result(w) }

// InOrder is the outcome where nothing is left to do.
type InOrder struct{ Subject gather.Subject }

func (o InOrder) close(_ context.Context, b *base) reconcile.Result {
	s := o.Subject
	b.state.Changes.ForgetHandled(s.Key)
	b.state.Due.Forget(s.Key)
	b.state.ReferentWaits.Forget(s.Key)
	b.state.Deferrals.Forget(s.Key)
	b.state.Refusals.Forget(s.Key)
	b.state.Warnings.Recovered(s.Key)
	b.backoff.Forget(s.Key)
	return reconcile.Result{}
}

// inOrderUntil is InOrder where what is left to do must wait.
type inOrderUntil struct {
	InOrder
	wait time.Duration
}

func (o inOrderUntil) close(ctx context.Context, b *base) reconcile.Result {
	o.InOrder.close(ctx, b)
	return queue.After(o.wait, queue.Retry)
}

// reloaded is the outcome of a reload that was made.
type reloaded struct {
	subject gather.Subject
	changes []policy.Change
	last    record.LastReload
	// generation is the one that the reload gave the workload.
	generation int64
}

func (o reloaded) close(ctx context.Context, b *base) reconcile.Result {
	s := o.subject
	b.state.Writes.Stamped(s.Key, o.generation, b.now())
	b.events.Clear(s.Reported(), reasonLost) // it is another stamp: where this one is lost as well, that is news
	if !s.Effects.Unwritten {
		b.events.Clear(s.Reported(), reasonReloadUnrecorded)
	}
	if !s.Events.First.IsZero() {
		b.metrics.latency(s.Object.Kind, b.now().Sub(s.Events.First))
	}
	b.events.EmitOwn(s.Reported(), o.last)
	log.FromContext(ctx).Info("reloaded the workload", "workload", s.Key, "changes", policy.Describe(o.changes), "hash", o.last.Hash)
	result := InOrder{s}.close(ctx, b)
	if s.Effects.NeedsRun {
		b.state.Runs.Require(s.CronJob(), state.DueRun)
		return queue.After(time.Second, queue.Retry)
	}
	if s.Effects.Run.Job != "" {
		b.state.Runs.Answered(s.CronJob()) // an earlier attempt may have had no answer
	}
	return result
}

// failed is the outcome of an attempt that failed: what is due stays due. Each cause is reported to the user once.
type failed struct {
	subject gather.Subject
	failure failure
}

func (o failed) close(ctx context.Context, b *base) reconcile.Result {
	s, f := o.subject, o.failure
	after := b.backoff.When(s.Key, f.pace())
	now := b.now()
	b.state.Deferrals.Failed(s.Key, state.Deferral{Since: s.Events.Last, Until: now.Add(after), IgnoresEvents: f.soon, Stored: f.stored}, now)
	starting := b.mayBeStart(s, f)
	if !f.soon && !starting && b.settled(s) {
		b.state.Changes.MarkActedOn(s.Key)
	}
	if (s.Effects.Run.Job != "" || s.Effects.NeedsRun) && !f.unstamped && apianswer.MayBeStored(f.err) {
		b.state.Runs.Require(s.CronJob(), state.DueRun) // the stamp may be stored, and newer than the content of the Job
	}
	b.metrics.failed(f.reason)
	news := !starting && !f.behind && (!f.quiet || b.backoff.HasFailedLong(s.Key))
	o.report(ctx, b, news, after)
	return queue.After(after, queue.Retry)
}

// report logs the failure, after which the next attempt waits for a time, and sends the Event where it is news.
func (o failed) report(ctx context.Context, b *base, news bool, after time.Duration) {
	s, f := o.subject, o.failure
	level := 0
	if !news {
		level = 1 // the next attempt mostly resolves it
	}
	recovering.Log(log.FromContext(ctx), f.err)
	log.FromContext(ctx).V(level).Info("reconciliation failed; retrying", "workload", s.Key, "event", f.reason, "error", textOf(f.err), "after", after)
	if news && s.Object.Kept != nil {
		send := b.events.Fail
		if f.lasting {
			send = b.events.Warn
		}
		send(s.Reported(), f.reason, f.text(), unreadRefs(f.err)...)
	}
}

// mayBeStart reports whether an attempt may have been refused by an API server that has just started.
func (b *base) mayBeStart(s gather.Subject, f failure) bool {
	if !f.refused {
		b.state.Refusals.Forget(s.Key)
		return false
	}
	now := b.now()
	return apianswer.MayBeStart(now.Sub(b.state.Refusals.Refused(s.Key, now)))
}
