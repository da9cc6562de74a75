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
	rec, err := policy.NewRecord(in, s.View.Managed[stamp.Hash], true)
	if err != nil {
		return failed{s, failure{reason: reasonReloadFailed, err: err}}
	}
	restart, last, fits := s.View.NewRestart(rec, verdict.Changes, r.now())
	if !fits {
		return failed{s, failure{reason: reasonReloadFailed, err: errors.New(tooLargeText(podsUnrestarted))}}
	}
	answer, err := r.merge(ctx, s, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": s.Object.ResourceVersion(),
			"annotations":     map[string]any{r.annotations.ConfigRecord: restart[stamp.Record], r.annotations.LastReload: restart[stamp.LastReload]},
		},
		"spec": map[string]any{"restartAt": stamp.RestartTime(last.Time).Format(time.RFC3339)},
	})
	if err != nil {
		return failed{s, failedWrite(s.Object.Kind, reasonReloadFailed, err)}
	}
	stored, explained := r.explained(s, answer)
	if !explained {
		r.state.Writes.Stamped(s.Key, answer.Generation, r.now())
		r.events.EmitOwn(s.Reported(), last)
		return failed{s, failure{reason: reasonReloadFailed, stored: true, err: errors.New(
			"the config-record of the restart was not stored, so that the pods are restarted again: the webhook is older than this replica, " +
				"or another webhook drops annotations")}}
	}
	r.wroteRecord(s)
	return reloaded{s, verdict.Changes, stored, answer.Generation}
}

// explained returns the last reload that a write of the loop has brought, as it is stored; false if that is an earlier one.
func (r restarts) explained(s gather.Subject, answer *metav1.PartialObjectMetadata) (record.LastReload, bool) {
	stored := answer.Annotations[r.annotations.LastReload]
	last, err := record.ParseLastReload(stored)
	return last, err == nil && stored != s.View.Managed[stamp.LastReload]
}
