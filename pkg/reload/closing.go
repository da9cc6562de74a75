package reload

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// closing ends the reconciliation of a workload: it records and reports the outcome, and decides when to look again.
type closing struct {
	events  *report.Reporter
	state   *state.State
	backoff state.Backoff
	queue   *queue.Queue
	metrics *metrics
	now     func() time.Time
}

// outcome is how the reconciliation of a workload ends. Who finds it returns it; loop.Reconcile alone closes it. nil means that the
// reconciliation goes on.
type outcome interface {
	// close records and reports the outcome, and returns when to look at the workload again.
	close(ctx context.Context, c closing) reconcile.Result
}

// waiting is the outcome of a workload that something holds up. The zero value waits for what queues the workload: an event, or a
// slot for its writes.
type waiting reconcile.Result

func (w waiting) close(context.Context, closing) reconcile.Result { return reconcile.Result(w) }

// inOrder is the outcome where nothing is left to do.
type inOrder struct{ subject gather.Subject }

func (o inOrder) close(_ context.Context, c closing) reconcile.Result {
	s := o.subject
	c.state.Changes.Settled(s.Key)
	c.state.Due.Forget(s.Key)
	c.state.Deferrals.Forget(s.Key)
	c.state.Warnings.Recovered(s.Key, reasonProblems, reasonMissing, reasonHeld, reasonNoRoom, reasonNewer, reasonLost, reasonContested)
	c.backoff.Forget(s.Key)
	return reconcile.Result{}
}

// reloaded is the outcome of a reload that was made.
type reloaded struct {
	subject gather.Subject
	verdict policy.Verdict
	last    record.LastReload
	// generation is the one that the reload gave the workload.
	generation int64
}

func (o reloaded) close(ctx context.Context, c closing) reconcile.Result {
	s := o.subject
	c.state.Writes.Stamped(s.Key, o.generation, c.now())
	c.events.Warn(s.Reported(), reasonLost, "") // it is another stamp: where this one is lost as well, that is news
	if !s.Events.First.IsZero() {
		c.metrics.latency(s.Object.Kind, c.now().Sub(s.Events.First))
	}
	c.events.EmitOwn(s.Reported(), o.last)
	log.FromContext(ctx).Info("Reloaded", "workload", s.Key, "changes", policy.Describe(o.verdict.Changes, 8), "hash", o.last.Hash)
	result := inOrder{s}.close(ctx, c)
	if s.OwesRun {
		c.state.Runs.Owe(s.Key)
		return queue.After(time.Second, queue.Retry)
	}
	return result
}

// failed is the outcome of an attempt that failed: what is due stays due. Each cause is reported to the user once.
type failed struct {
	subject gather.Subject
	failure failure
}

func (o failed) close(ctx context.Context, c closing) reconcile.Result {
	s, f := o.subject, o.failure
	after := c.backoff.When(s.Key, f.pace())
	if f.soon || s.Stored {
		c.state.Deferrals.Defer(s.Key, state.Deferral{Since: c.now(), Until: c.now().Add(after), Firm: f.soon})
	}
	if !f.soon {
		c.state.Changes.Acted(s.Key)
	}
	c.metrics.failed(f.reason)
	log.FromContext(ctx).Info("Attempt failed; retrying", "workload", s.Key, "reason", f.reason, "error", f.err.Error(), "after", after)
	news := !f.quiet || c.backoff.Lingers(s.Key)
	if news && s.Object.Kept != nil {
		c.events.Warn(s.Reported(), f.reason, f.text(), unreadRefs(f.err)...)
	}
	return c.queue.Retry(s.Key, after)
}
