package action

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// restarts reload Argo Rollouts without a stamp.
type restarts struct{ *base }

// restart reloads an Argo Rollout without a stamp: one write restarts its pods and records that they start with the present
// configuration, which is read live. Where the webhook sees another one, it records and explains that. Each restart is reported; one that is
// stored without a Record stays due and is repeated, since the pods may have started too early, but ever later: whatever drops the Record
// may go on doing so.
func (r restarts) restart(ctx context.Context, s gather.Subject, in policy.Input) Outcome {
	verdict, ended := r.assessLive(ctx, s, in)
	if ended != nil {
		return ended
	}
	change, last, err := r.restarting(s, in, verdict)
	if err != nil {
		return failed{s, failure{reason: reasonReloadFailed, err: err}}
	}
	answer, err := r.merge(ctx, s, change)
	if err != nil {
		return failed{s, failedWrite(reasonReloadFailed, err)}
	}
	s.Restarted = true
	stored, explained := r.explained(s, answer)
	if !explained {
		r.state.Writes.Stamped(s.Key, answer.Generation, r.now())
		r.events.EmitOwn(s.Reported(), last)
		s.Stored = true // its own event is no reason to restart earlier
		return failed{s, failure{reason: reasonReloadFailed, err: errors.New(
			"the config-record of the restart was not stored, so that the pods are restarted again: the webhook is older than this replica, " +
				"or another webhook drops annotations")}}
	}
	r.wroteRecord(s)
	return reloaded{s, verdict, stored, answer.Generation}
}

// explained returns the last reload that a write of the loop has brought, as it is stored; false if that is an earlier one.
func (r restarts) explained(s gather.Subject, answer *metav1.PartialObjectMetadata) (record.LastReload, bool) {
	stored := answer.Annotations[r.annotations.LastReload]
	last, err := record.ParseLastReload(stored)
	return last, err == nil && stored != s.View.Managed[stamp.LastReload]
}

// restarting returns the merge patch of a restart, and how it explains the reload.
func (r restarts) restarting(s gather.Subject, in policy.Input, verdict policy.Verdict) (map[string]any, record.LastReload, error) {
	hash := s.View.Managed[stamp.Hash]
	last := policy.NewLastReload(verdict.Changes, s.View.ReloadTime(r.now()), s.View.Managed[stamp.LastReload])
	last.Hash, last.Generation = record.HashName(hash), s.Object.Generation()
	rec, err := policy.NewRecord(in, hash, true)
	if err != nil {
		return nil, last, err
	}
	text, fits := rec.Text(s.View.WorkloadBudget - len(last.String()))
	if !fits {
		// Without the Record the restart would be repeated; the explanation gives way to it.
		last = last.Shortest()
		text, fits = rec.Text(s.View.WorkloadBudget - len(last.String()))
	}
	if !fits {
		return nil, last, errors.New(tooLargeText(podsUnrestarted))
	}
	return map[string]any{
		"metadata": map[string]any{
			"resourceVersion": s.Object.ResourceVersion(),
			"annotations":     map[string]any{r.annotations.ConfigRecord: text, r.annotations.LastReload: last.String()},
		},
		"spec": map[string]any{"restartAt": stamp.RestartTime(last.Time).Format(time.RFC3339)},
	}, last, nil
}
