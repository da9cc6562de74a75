package action

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// Close records and reports the outcome of a reconciliation, and returns when to look at the workload again.
func (a *Actions) Close(ctx context.Context, ended Outcome) reconcile.Result {
	return ended.close(ctx, a)
}

// Outcome is how the reconciliation of a workload ends. Callers return it; only Close closes it. nil means that the
// reconciliation goes on.
type Outcome interface {
	close(ctx context.Context, a *Actions) reconcile.Result
}

// Waiting is the outcome of a workload whose reconciliation must go on later. The zero value waits until an event, or a free slot for its
// writes, queues the workload.
type Waiting reconcile.Result

func (w Waiting) close(context.Context, *Actions) reconcile.Result { return reconcile.Result(w) }

// InOrder is the outcome where nothing is left to do.
type InOrder struct{ Subject gather.Subject }

func (o InOrder) close(_ context.Context, a *Actions) reconcile.Result {
	s := o.Subject
	a.state.Changes.ForgetHandled(s.Key)
	a.state.Due.Forget(s.Key)
	a.state.ReferentWaits.Forget(s.Key)
	a.state.Deferrals.Forget(s.Key)
	a.state.Warnings.Recovered(s.Key)
	a.backoff.Forget(s.Key)
	return reconcile.Result{}
}

// inOrderUntil is InOrder where what is left to do must wait.
type inOrderUntil struct {
	InOrder
	wait time.Duration
}

func (o inOrderUntil) close(ctx context.Context, a *Actions) reconcile.Result {
	o.InOrder.close(ctx, a)
	return queue.After(o.wait, queue.Retry)
}

// reloaded is the outcome of a reload that was made.
type reloaded struct {
	subject gather.Subject
	verdict policy.Verdict
	last    record.LastReload
	// generation is the one that the reload gave the workload.
	generation int64
}

func (o reloaded) close(ctx context.Context, a *Actions) reconcile.Result {
	s := o.subject
	a.state.Writes.Stamped(s.Key, o.generation, a.now())
	a.events.Clear(s.Reported(), reasonLost) // it is another stamp: where this one is lost as well, that is news
	if !s.Events.First.IsZero() {
		a.metrics.latency(s.Object.Kind, a.now().Sub(s.Events.First))
	}
	a.events.EmitOwn(s.Reported(), o.last)
	log.FromContext(ctx).Info("reloaded the workload", "workload", s.Key, "changes", policy.Describe(o.verdict.Changes, 8), "hash", o.last.Hash)
	result := InOrder{s}.close(ctx, a)
	if s.NeedsRun {
		a.state.Runs.SetPending(s.Key)
		return queue.After(time.Second, queue.Retry)
	}
	return result
}

// failed is the outcome of an attempt that failed: what is due stays due. Each cause is reported to the user once.
type failed struct {
	subject gather.Subject
	failure failure
}

// settled reports whether the events of an attempt have settled. An attempt to adopt does not wait for that: where it fails, it has not
// acted on them.
func (a *Actions) settled(s gather.Subject) bool {
	return a.gates.SettleWait(state.GateInput{Now: a.now(), FirstUnhandled: s.Events.FirstUnhandled, LastEvent: s.Events.Last}) == 0
}

func (o failed) close(ctx context.Context, a *Actions) reconcile.Result {
	s, f := o.subject, o.failure
	after := a.backoff.When(s.Key, f.pace())
	if f.soon || s.Stored {
		a.state.Deferrals.Defer(s.Key, state.Deferral{Since: s.Events.Last, Until: a.now().Add(after), IgnoresEvents: f.soon})
	}
	if !f.soon && a.settled(s) {
		a.state.Changes.MarkActedOn(s.Key)
	}
	if f.asked {
		a.state.Due.Postponed(s.Key, a.now())
	}
	a.metrics.failed(f.reason)
	level, news := 0, !f.quiet || a.backoff.HasFailedLong(s.Key)
	if !news {
		level = 1 // a conflict that the next attempt resolves
	}
	log.FromContext(ctx).V(level).Info("reconciliation failed; retrying", "workload", s.Key, "event", f.reason, "error", textOf(f.err), "after", after)
	if news && s.Object.Kept != nil {
		a.events.Fail(s.Reported(), f.reason, f.text(), unreadRefs(f.err)...)
	}
	return queue.After(after, queue.Retry)
}
