package action

import (
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// idle does what is left to do for workloads that no reload is due for.
type idle struct {
	*base

	notices notices
	runs    runs
}

// purge removes a dummy that was stored while no webhook answered: no request waits for it any more.
func (i idle) purge(ctx context.Context, s gather.Subject) Outcome {
	if _, stored := s.View.Managed[stamp.Dummy]; !stored {
		return InOrder{s}
	}
	if wait := i.WaitToWrite(s); wait > 0 {
		return Waiting(queue.After(wait, queue.Retry))
	}
	if wait := i.removalContested(ctx, s, i.annotations.ConfigHash, reasonRequestContested, "removes this reload request"); wait > 0 {
		return inOrderUntil{InOrder{s}, wait}
	}
	if !i.MayWrite(s, inflight.Background) {
		return Waiting{}
	}
	if _, err := i.patchAnnotations(ctx, s, map[string]any{i.annotations.ConfigHash: nil}); err != nil {
		return failed{s, failedWrite(s.Object.Kind, "PurgeFailed", err)}
	}
	i.state.Contests.Removed(s.Key, i.annotations.ConfigHash, i.now())
	return InOrder{s}
}

// end does what is left where nothing is due.
func (i idle) end(ctx context.Context, s gather.Subject) Outcome {
	i.notices.notifyStored(ctx, s)
	if ended := i.runs.runPending(ctx, s); ended != nil {
		i.state.Changes.ForgetHandled(s.Key) // the run waits, not the configuration: what comes now is given the time to settle
		return ended
	}
	ended, wait := i.purge(ctx, s), i.state.Runs.WaitForOthers(s.CronJob(), i.now())
	if inOrder, ok := ended.(InOrder); ok && wait > 0 {
		return inOrderUntil{inOrder, wait}
	}
	return ended
}
