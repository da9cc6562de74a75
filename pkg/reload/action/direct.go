package action

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// stamps are the writes that the loop makes in place of the webhook.
type stamps struct {
	*base

	pauses pauses
	runs   runs
}

// write writes what the webhook would have written, by the same rules: the reload is played as a poke that the webhook
// sees. Tests in the patch pin the annotations from which it was computed. The loop has looked at the cache, which may lack a
// reload whose answer was lost, or one of another leader, and what users have changed: from here on, only what is stored counts.
func (w stamps) write(ctx context.Context, s gather.Subject, verdict policy.Verdict) Outcome {
	o, view, ended := w.asStored(ctx, s)
	if ended != nil {
		return ended
	}
	s.Object, s.View = o.Summary(), view
	states, err := w.gather.Store.ReadLive(ctx, s.Key.Namespace, s.View.Intent.Refs())
	if err != nil {
		return failed{s, unreadable(err)}
	}
	result, err := stamp.RequestReload(s.View, w.gather.WebhookInput(s, w.gather.Keys.Ring(), states))
	if err != nil {
		return failed{s, failure{reason: reasonReloadFailed, err: err, soon: true}}
	}
	ops := w.gather.Reader.Operations(o, result.Managed)
	if len(ops) == 0 {
		return InOrder{s}
	}
	if result.Stamped {
		states, ring := s.View.Known().Keep(states, w.gather.Keys.Ring())
		live := policy.Verdict{Action: policy.Reload, Changes: result.Changes} // the cache may not have shown them all
		if ended := w.runs.runIfDue(ctx, &s, live, ring, states); ended != nil {
			return ended
		}
	}
	if pausing := w.pauses.beginDirectly(s, o, result); pausing.period > 0 {
		w.state.Contests.Set(s.Key, w.pauses.at)
		ops, s.Effects.PausedFor = append(ops, pausing.operations...), pausing.period
	}
	body, err := json.Marshal(append(w.gather.Reader.Guard(o), ops...))
	if err != nil {
		return failed{s, failure{reason: reasonReloadFailed, err: err}}
	}
	answer, err := w.patch(ctx, s, client.RawPatch(types.JSONPatchType, body))
	if err != nil {
		return failed{s, failedPin(s.Object.Kind, reasonReloadFailed, err)}
	}
	return w.stamped(ctx, s, verdict, directStamp{before: s.View.Managed, decided: result, answer: answer})
}

// asStored reads a workload live, and returns what the rules see of it. The outcome is set where nothing is to be written, or not yet.
func (w stamps) asStored(ctx context.Context, s gather.Subject) (workload.Object, stamp.View, Outcome) {
	o, err := w.gather.Stored(ctx, s)
	switch {
	case apianswer.NotFound(err):
		return o, stamp.View{}, InOrder{s}
	case err != nil:
		return o, stamp.View{}, failed{s, failedWrite(s.Object.Kind, reasonReloadFailed, err)}
	case o.UID() != s.Object.UID():
		return o, stamp.View{}, failed{s, transientFailure(reasonReloadFailed, "the workload was created again")}
	}
	view, _ := w.gather.Reader.Read(o)
	switch {
	case !w.inScope(ctx, s.Key, o.Labels()):
		return o, view, outOfScope{InOrder{s}, o.Annotations()}
	case w.isReleasedLive(ctx, s.Key, o, view):
		return o, view, InOrder{s}
	case view.Unresolved != nil: // it tracks more than can be found now: the stamp would leave that out
		return o, view, Unreadable(s, view.Unresolved)
	}
	if wait := w.postponeLive(s, view); wait > 0 {
		return o, view, Waiting(queue.After(wait, queue.Config))
	}
	return o, view, nil
}

// outOfScope is the outcome of a workload that has left the scope, as a live read shows it.
type outOfScope struct {
	InOrder
	// stored are its annotations.
	stored map[string]string
}

// directStamp is a write of the loop that the API server has stored.
type directStamp struct {
	before  stamp.Managed
	decided stamp.Result
	answer  *metav1.PartialObjectMetadata
}

// stamped returns the outcome of a direct stamp: what is stored counts, which a webhook that is back may have changed.
func (w stamps) stamped(ctx context.Context, s gather.Subject, verdict policy.Verdict, d directStamp) Outcome {
	w.state.Contests.Wrote(s.Key, d.before[stamp.Record], w.now())
	w.metrics.wroteDirectly(s.Object.Kind)
	if !d.decided.Stamped {
		w.state.Writes.RecordWrite(s.Key, d.answer.Generation, w.now())
		return InOrder{s}
	}
	last, made := w.explanation(ctx, &s, d)
	if !made { // the webhook could not read what the stamp was made from
		return failed{s, transientFailure(reasonReloadFailed, "the webhook undid the stamp")}
	}
	return reloaded{s, verdict.Changes, last, d.answer.Generation}
}

// explanation returns the last reload that explains a stamp, which may not be stored; false where the stamp is not stored either.
func (w stamps) explanation(ctx context.Context, s *gather.Subject, d directStamp) (last record.LastReload, made bool) {
	stored := d.answer.Annotations[w.annotations.LastReload]
	last, err := record.ParseLastReload(stored)
	if err == nil && stored != d.before[stamp.LastReload] {
		return last, true
	}
	marks, made, err := w.unexplainedStamp(ctx, *s)
	if err != nil && d.decided.Unwritten != "" && stored == d.decided.Managed[stamp.LastReload] {
		marks, made = d.decided.Managed, true // the answer is as decided, and does not show more
	}
	if !made {
		return last, false
	}
	w.markUnwritten(s, d.decided)
	return decidedReload(d.decided, marks[stamp.Hash]), true
}
