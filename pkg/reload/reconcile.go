package reload

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Reconcile compares one workload with its configuration and does what is due. It returns no errors: what failed is due
// again after a while, at the workload's own pace.
func (l *loop) Reconcile(ctx context.Context, key workload.Key) (reconcile.Result, error) {
	defer l.actions.ReleaseSlot(key)
	ctx, done := l.large.Begin(ctx, key.Namespace)
	defer done()
	l.queue.Taken(key)
	return l.queue.Requeued(key, l.reconcileAndRequeue(ctx, key)), nil
}

// reconcileAndRequeue reconciles a workload and returns when to do so again.
func (l *loop) reconcileAndRequeue(ctx context.Context, key workload.Key) reconcile.Result {
	if l.store.WaitForSync(ctx) != nil {
		return queue.After(time.Second, queue.Workload) // the context has ended
	}
	ended, limit := l.resumeOrReconcile(ctx, key)
	result := notLater(l.actions.Close(ctx, ended), limit)
	return notLater(result, l.state.Warnings.Again(key, l.now()))
}

// resumeOrReconcile ends what an earlier leader or reconciliation has left, and handles the workload. It also returns when to look
// again at the latest; 0 sets no limit.
func (l *loop) resumeOrReconcile(ctx context.Context, key workload.Key) (ended action.Outcome, limit time.Duration) {
	if ended := l.actions.CompleteRecreation(ctx, key); ended != nil {
		return ended, 0
	}
	s, ok := l.subject(ctx, key)
	if !ok {
		l.tracking.ForgetDeleted(key)
		return action.Waiting{}, 0
	}
	switch l.tracking.Scope(ctx, s.Key, s.Object.Labels()) {
	case tracking.Outside:
		l.state.Runs.ClearPending(s.CronJob())
		return action.InOrder{Subject: s}, 0
	case tracking.Unknown:
		return action.Waiting(l.tracking.LookAgain()), 0 // what is due stays due
	case tracking.Inside:
	}
	limit, ended = l.actions.EndPause(ctx, s)
	if ended == nil {
		ended = l.reconcileInScope(ctx, s)
	}
	return ended, limit
}

// notLater returns a result that looks at the workload again after some time at the latest, with no lower a priority; 0 sets no limit.
func notLater(result reconcile.Result, limit time.Duration) reconcile.Result {
	if limit <= 0 || result.RequeueAfter > 0 && result.RequeueAfter <= limit {
		return result
	}
	priority := queue.Workload
	if result.Priority != nil {
		priority = max(priority, *result.Priority)
	}
	return queue.After(limit, priority)
}

// reconcileInScope compares a workload in scope with its configuration and does what is due.
func (l *loop) reconcileInScope(ctx context.Context, s gather.Subject) action.Outcome {
	if s.View.Ignored || s.View.Excluded || !s.View.Intent.Asked {
		return l.reconcileExcluded(ctx, s)
	}
	if l.keys.Ring().Empty() {
		// The change of the keys queues it again. The readiness of the process reports it; a line and an Event for each
		// workload would not help.
		return action.Waiting{}
	}
	if err := s.View.Unresolved; err != nil {
		if wait := l.actions.WaitToWrite(s); wait > 0 {
			return action.Waiting(queue.After(wait, queue.Retry))
		}
		l.tracking.EnterAgain(s.Key)
		return action.Unreadable(s, err)
	}
	if l.isBehind(s) {
		// The event of the write brings the workload back; the delay is for a lost one.
		return action.Waiting(queue.After(time.Second, queue.Workload))
	}
	// Not earlier: what a cache that is behind shows was reported, and is not the last reload any more.
	if l.events.EmitReloads(s.Reported()) {
		s.Events = l.state.Changes.StampedByOther(s.Key)
		l.actions.RequireRun(s)
	}
	l.actions.ReportLostStamp(s)
	if s.Object.Deleting() || l.jobs.Ignores(s.Object, l.state.Changes.HasPending(s.Key)) {
		return action.InOrder{Subject: s}
	}
	return l.decide(ctx, s)
}

// reconcileExcluded reports what is wrong with a workload that is not to be reloaded, and the reloads before it was excluded: the leader
// that made them may have ended before it could write their Events.
func (l *loop) reconcileExcluded(ctx context.Context, s gather.Subject) action.Outcome {
	if !l.isBehind(s) {
		l.events.EmitReloads(s.Reported())
	}
	if !s.View.Ignored {
		l.problems.report(ctx, s, policy.Input{}, nil)
	}
	return l.actions.LeaveAlone(ctx, s)
}

// isBehind reports whether the cache has not seen this process's last write of the workload yet.
func (l *loop) isBehind(s gather.Subject) bool {
	return l.state.Writes.IsCacheBehind(s.Key, s.Object.Generation(), l.now())
}

func (l *loop) subject(ctx context.Context, key workload.Key) (gather.Subject, bool) {
	o, ok := l.tracking.Get(ctx, key)
	if !ok {
		return gather.Subject{}, false
	}
	return l.gather.Subject(key, o, l.state.Changes.BeginAttempt(key)), true
}

// decide decides about a workload that asks for something, and acts: gather, decide, wait at the gates, apply.
func (l *loop) decide(ctx context.Context, s gather.Subject) action.Outcome {
	in := l.gather.Input(s)
	l.state.Takeovers.ForgetOwn(s.Key, in.Ring)
	a := policy.Assess(in)
	l.problems.report(ctx, s, in, a.Reads)
	l.events.Warn(s.Reported(), reasonNewer, newerRecord(in.Known))
	if len(a.Reads) == 0 && a.Verdict.Action == policy.Nothing && len(a.Verdict.Adopt) == 0 {
		l.events.Clear(s.Reported(), reasonHeld)
		return l.actions.UpToDate(ctx, s)
	}
	if wait := l.retryWait(ctx, s); wait > 0 {
		return action.Waiting(queue.After(wait, queue.Retry))
	}
	if wait := l.pacing.postpone(ctx, s, a); wait > 0 {
		return action.Waiting(queue.After(wait, queue.Config))
	}
	if !l.actions.MayWrite(s, rank(a)) {
		if a.MayReload { // as urgent as it can be
			l.pacing.due(s)
			l.pacing.waits(s)
		}
		return action.Waiting{} // queued again when it has a slot
	}
	if len(a.Reads) > 0 {
		err := l.gather.Read(ctx, s, in, a.Reads)
		l.problems.reportMissing(ctx, s, in)
		if err != nil {
			return action.Unreadable(s, err)
		}
		a = policy.Assess(in)
		if wait := l.pacing.postponeAgain(ctx, s, a); wait > 0 {
			return action.Waiting(queue.After(wait, queue.Config))
		}
	}
	if ended := l.learn(ctx, s, in, a); ended != nil {
		return ended
	}
	return l.apply(ctx, s, in, a)
}

// learn reads what the annotations depend on before they cause a reload, where that may not be listed. The outcome is nil where all of it
// is known.
func (l *loop) learn(ctx context.Context, s gather.Subject, in policy.Input, a policy.Assessment) action.Outcome {
	if a.Verdict.Action == policy.Nothing {
		return nil
	}
	learned, err := l.gather.Learn(ctx, s, in)
	switch {
	case err != nil:
		return action.Unreadable(s, err)
	case learned:
		// The event of the read brings the workload back; the delay is for a lost one.
		return action.Waiting(queue.After(time.Second, queue.Config))
	}
	return nil
}

// retryWait returns how long to wait because of earlier attempts.
func (l *loop) retryWait(ctx context.Context, s gather.Subject) time.Duration {
	if wait := l.state.Deferrals.Wait(s.Key, s.Events.Last, l.now()); wait > 0 {
		if l.state.Deferrals.IgnoresEvents(s.Key, s.Events.Last) {
			l.pacing.waits(s)
		}
		return wait
	}
	wait := l.actions.RecordContested(ctx, s)
	if wait > 0 {
		l.pacing.waits(s)
	}
	return wait
}

// rank returns how urgent the first write is.
func rank(a policy.Assessment) inflight.Class {
	if a.MayReload {
		return inflight.Urgent
	}
	return inflight.Background
}

// apply does what the Verdict calls for.
func (l *loop) apply(ctx context.Context, s gather.Subject, in policy.Input, a policy.Assessment) action.Outcome {
	verdict := a.Verdict
	l.problems.metrics.verdict(in.Known, verdict)
	l.problems.reportHold(ctx, s, verdict)
	switch {
	case verdict.Action == policy.Reload:
		l.pacing.due(s)
		if wait := l.pacing.awaitUnread(ctx, s, in); wait > 0 {
			return action.Waiting(queue.After(wait, queue.Config))
		}
		return l.actions.Reload(ctx, s, in, verdict)
	case verdict.Foreign != "", len(verdict.Adopt) > 0:
		return l.actions.Adopt(ctx, s, in, a)
	default:
		return l.actions.UpToDate(ctx, s)
	}
}
