package reload

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// adopt writes the Record: what is there now is what the pods have.
func (a *actions) adopt(ctx context.Context, s gather.Subject, in policy.Input, found policy.Assessment) outcome {
	hash := s.View.Managed[stamp.Hash]
	in, outdated, err := a.gather.AsCreated(ctx, s, in, found.Verdict.Adopt)
	if err != nil {
		return failed{s, unreadable(err)}
	}
	rec, err := found.Adopt(in, hash)
	if err != nil {
		return failed{s, failure{reason: "AdoptionFailed", err: err}}
	}
	text, fits := rec.Text(s.View.RecordBudget())
	a.events.Warn(s.Reported(), reasonNoRoom, noRoom(fits))
	if !fits {
		return a.purge(ctx, s) // the hash alone is compared, at the price of reads
	}
	key := a.annotations.ConfigRecord
	answer, err := a.writer.patchAnnotations(ctx, s, map[string]any{key: text})
	if err != nil {
		return failed{s, ofJob(s, failedWrite("AdoptionFailed", err))}
	}
	a.state.Births.Forget(s.Key)
	in.Known = policy.KnownOf(hash, answer.Annotations[key])
	if len(policy.Assess(in).Verdict.Adopt) > 0 {
		s.Stored = true
		// The webhook may see another state for a moment, but not for long.
		passing := !a.backoff.Persists(s.Key)
		return failed{s, failure{reason: "AdoptionFailed", soon: passing, quiet: true, err: errors.New(
			"the webhook did not accept the config-record: it sees another state or has another digest key")}}
	}
	a.state.Contests.Wrote(s.Key, s.View.Managed[stamp.Record], a.now())
	a.state.Takeovers.Done(s.Key, found.Verdict.Foreign)
	a.metrics.adopted(s.Object.Kind)
	a.problems.reportLostKey(s, found.Verdict)
	log.FromContext(ctx).V(1).Info("Adopted", "workload", s.Key, "refs", len(found.Verdict.Adopt))
	if outdated {
		return waiting(queue.After(time.Second, queue.Config)) // or earlier, by the event of this write
	}
	return inOrder{s}
}

// purge removes a dummy that was stored while no webhook answered: no request waits for it any more.
func (a *actions) purge(ctx context.Context, s gather.Subject) outcome {
	if _, stored := s.View.Managed[stamp.Dummy]; !stored {
		return inOrder{s}
	}
	if !a.writer.mayWrite(s, inflight.Background) {
		return waiting{}
	}
	if _, err := a.writer.patchAnnotations(ctx, s, map[string]any{a.annotations.ConfigHash: nil}); err != nil {
		return failed{s, failedWrite("PurgeFailed", err)}
	}
	return inOrder{s}
}

// noRoom is the text of the Event about a Record that does not fit; empty if it does.
func noRoom(fits bool) string {
	if fits {
		return ""
	}
	return "the annotations are too large to record the config objects: a change still restarts pods that were stamped before, " +
		"but its cause cannot be named; list fewer objects, or shorten other annotations"
}

// newerRecord is the text of the Event about a Record that cannot be read; empty if it can.
func newerRecord(known policy.Known) string {
	if !known.Newer {
		return ""
	}
	return "a newer version of pod-reloader has written the config-record: changes restart nothing; upgrade this one"
}
