package reload

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
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

// inOrder closes a reconciliation that leaves nothing to do.
func (c closing) inOrder(s subject) reconcile.Result {
	c.state.Changes.Settled(s.key)
	c.state.Due.Forget(s.key)
	c.state.Deferrals.Forget(s.key)
	c.state.Warnings.Recovered(s.key, reasonProblems, reasonMissing, reasonHeld, reasonNoRoom, reasonNewer, reasonLost, reasonContested)
	c.backoff.Forget(s.key)
	return reconcile.Result{}
}

// done closes a reload that was made, and that gave the workload a generation.
func (c closing) done(
	ctx context.Context, s subject, verdict policy.Verdict, last record.LastReload, generation int64,
) reconcile.Result {
	c.state.Writes.Stamped(s.key, generation, c.now())
	c.events.Warn(s.reported(), reasonLost, "") // it is another stamp: where this one is lost as well, that is news
	if !s.events.First.IsZero() {
		c.metrics.latency(s.object.Kind, c.now().Sub(s.events.First))
	}
	c.events.EmitOwn(s.reported(), last)
	log.FromContext(ctx).Info("Reloaded", "workload", s.key, "changes", policy.Describe(verdict.Changes, 8), "hash", last.Hash)
	result := c.inOrder(s)
	if s.owesRun {
		c.state.Runs.Owe(s.key)
		return queue.After(time.Second, queue.Retry)
	}
	return result
}

// retry closes a reconciliation that failed: what is due stays due. Each cause is reported to the user once.
func (c closing) retry(ctx context.Context, s subject, f failure) reconcile.Result {
	after := c.backoff.When(s.key, f.pace())
	if f.soon || s.stored {
		c.state.Deferrals.Defer(s.key, state.Deferral{Since: c.now(), Until: c.now().Add(after), Firm: f.soon})
	}
	if !f.soon {
		c.state.Changes.Acted(s.key)
	}
	c.metrics.failed(f.reason)
	log.FromContext(ctx).Info("Attempt failed; retrying", "workload", s.key, "reason", f.reason, "error", f.err.Error(), "after", after)
	news := !f.quiet || c.backoff.Lingers(s.key)
	if news && s.object.Kept != nil {
		c.events.Warn(s.reported(), f.reason, f.text(), unreadRefs(f.err)...)
	}
	return c.queue.Retry(s.key, after)
}
