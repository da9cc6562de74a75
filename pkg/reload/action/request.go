package action

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// requests ask the webhook for the reloads that are due.
type requests struct {
	*base

	// stamps write where no webhook handles a request.
	stamps stamps
	pauses pauses
	runs   runs
}

// send asks the webhook for the reload, and stamps by itself where none answers.
func (r requests) send(ctx context.Context, s gather.Subject, in policy.Input, verdict policy.Verdict) Outcome {
	if r.generationToPin(s) != s.Object.Generation() {
		var ended Outcome
		if in, verdict, ended = r.decideLive(ctx, &s); ended != nil {
			return ended
		}
	}
	return r.sendDecided(ctx, s, in, verdict)
}

func (r requests) sendDecided(ctx context.Context, s gather.Subject, in policy.Input, verdict policy.Verdict) Outcome {
	if isRunDue(s, verdict) {
		var ended Outcome
		if verdict, ended = r.assessLive(ctx, s, in); ended != nil {
			return ended
		}
	}
	proof, err := r.currentDigest(ctx, s, in, verdict)
	if err != nil {
		return failed{s, unreadable(err)}
	}
	if ended := r.runs.runIfDue(ctx, &s, verdict, in.Ring, in.Current); ended != nil {
		return ended
	}
	request := r.newReloadRequest(s, in, proof)
	r.state.Contests.Set(s.Key, r.annotations.ConfigHash)
	if request.Further != nil {
		r.state.Contests.Set(s.Key, r.pauses.at)
		s.Effects.PausedFor = s.View.Intent.PausePeriod
	}
	result, err := r.ask(ctx, &s, in, request)
	switch result.Outcome {
	case poke.Reloaded:
		if request.Digest == digest.AnyCurrent {
			s.Effects.NeedsRun = s.Effects.NeedsRun || s.Effects.Run.NeedsAnother(s.Object.Kind, s.View.Intent, verdict.Changes, result.LastReload)
		}
		return reloaded{s, verdict.Changes, result.LastReload, cmp.Or(generationAfter(request.Generation), result.Generation)}
	case poke.Unseen:
		return r.stampUnseen(ctx, s, verdict, request)
	case poke.Current, poke.Purged, poke.Stale:
		r.pauses.revertPause(ctx, s, request)
		f := r.explainNoReload(ctx, s, in, result.Outcome, err)
		f.stored = request.Further != nil // the pause, and its end
		f.unstamped = result.Outcome != poke.Stale
		return failed{s, f}
	case poke.Conflict:
		return failed{s, r.explainNoReload(ctx, s, in, result.Outcome, err)}
	default:
		return failed{s, notStored(s.Object.Kind, request, err)}
	}
}

// decideLive takes the workload as it is stored, and decides anew. A request for each generation is handled whatever the workload has become since
// the cache has seen it: it may ask for a pause by now, or to be left alone. The outcome is set where no request is due.
func (r requests) decideLive(ctx context.Context, s *gather.Subject) (in policy.Input, verdict policy.Verdict, ended Outcome) {
	o, _, ended := r.stamps.asStored(ctx, *s)
	if ended != nil {
		return in, verdict, ended
	}
	live := r.withObject(*s, o)
	s.Object, s.View = live.Object, live.View
	in = r.gather.Input(*s)
	if err := r.gather.Read(ctx, *s, in, unread(in)); err != nil {
		return in, verdict, failed{*s, unreadable(err)}
	}
	if verdict = policy.Assess(in).Verdict; verdict.Action != policy.Reload {
		ended = failed{*s, transientFailure(reasonReloadFailed, "the workload has changed again")}
	}
	return in, verdict, ended
}

// notStored is the failure of a request that the API server has refused, or has not answered.
func notStored(kind workload.Kind, request poke.Request, err error) failure {
	if request.Further == nil {
		return failedWrite(kind, reasonReloadFailed, err)
	}
	return failedPin(kind, reasonReloadFailed, err)
}

// generationAfter returns the generation that a write of the spec gives a workload; 0 for a kind without generations.
func generationAfter(before int64) int64 {
	if before == 0 {
		return 0
	}
	return before + 1
}

// newReloadRequest returns the request for a reload with a digest.
func (r requests) newReloadRequest(s gather.Subject, in policy.Input, proof string) poke.Request {
	generation := s.Object.Generation()
	switch {
	case r.asksForLive(s, in):
		proof = digest.AnyCurrent // also where a Job was made with a content that is known
	case proof != digest.AnyCurrent:
		generation = r.generationToPin(s) // the digest is a proof for each
	}
	return poke.Request{
		GroupVersionKind: s.Object.Kind.GroupVersionKind,
		Namespace:        s.Key.Namespace,
		Name:             s.Key.Name,
		Digest:           proof,
		Refs:             in.Refs,
		Generation:       generation,
		UID:              types.UID(s.Object.UID()),
		Keys:             r.annotations,
		Further:          r.pauses.begin(s, generation),
	}
}

// stampUnseen stamps a workload on which a request was stored that no webhook has handled.
func (r requests) stampUnseen(ctx context.Context, s gather.Subject, verdict policy.Verdict, request poke.Request) Outcome {
	log.FromContext(ctx).Info("no webhook handled the write; stamping directly", "workload", s.Key)
	ended := r.stamps.write(ctx, s, verdict)
	switch left := ended.(type) {
	case InOrder:
		r.pauses.revertPause(ctx, s, request)
	case outOfScope:
		r.removeReloadRequest(ctx, left, request)
		r.pauses.revertPause(ctx, s, request)
	case failed:
		if !left.failure.soon { // nothing would roll out until it is mended, and each attempt after the end of the period would pause again
			r.pauses.revertPause(ctx, s, request)
		}
		left.failure.stored = true // the request
		return left
	}
	return ended
}

// removeReloadRequest removes a request that was stored on a workload which had left the scope, as the watch had not shown yet. The webhook purges
// nothing there, and the loop does not look at the workload again. It leaves a request that another client has stored since.
func (r requests) removeReloadRequest(ctx context.Context, left outOfScope, request poke.Request) {
	dummy := poke.Dummy(request.Digest, request.Generation)
	if left.stored[r.annotations.ConfigHash] != dummy {
		return
	}
	pointer := stamp.Pointer("metadata", "annotations", r.annotations.ConfigHash)
	_, err := r.operate(ctx, left.Subject, jsonpatch.NewOperation("test", pointer, dummy), jsonpatch.NewOperation("remove", pointer, nil))
	if err != nil && !isGone(left.Subject.Object.Kind, err) {
		log.FromContext(ctx).Info("cannot remove a reload request from a workload that has left the scope",
			"workload", left.Subject.Key, "error", textOf(err), "remedy", "remove the annotation "+r.annotations.ConfigHash+" of the workload")
	}
}

// ask sends a request, and judges the answer by what is known of the workload.
func (r requests) ask(ctx context.Context, s *gather.Subject, in policy.Input, request poke.Request) (result poke.Result, err error) {
	err = r.write(ctx, *s, func(ctx context.Context) (err error) {
		result, err = poke.Do(ctx, r.client, request, fieldOwner)
		return err
	})
	r.metrics.poked(result.Outcome)
	if result.Outcome == poke.Reloaded && reportedBefore(*s, request, result.LastReload) {
		result.Outcome = poke.Purged
	}
	if last, made := r.unexplained(ctx, s, in, request, result); made {
		result.Outcome, result.LastReload = poke.Reloaded, last
	}
	return result, err
}

// unexplained returns the reload that a request has made although the answer does not say so: where last-reload does not fit
// into the annotations, or another webhook removes it, only the template shows it. It costs a read.
func (r requests) unexplained(
	ctx context.Context, s *gather.Subject, in policy.Input, request poke.Request, answer poke.Result,
) (last record.LastReload, made bool) {
	if !mayHaveStamped(request, answer) {
		return last, false
	}
	due, err := stamp.RequestReload(s.View, r.gather.WebhookInput(*s, in.Ring, digest.Subset(in.Current, in.Refs)))
	if err != nil || !due.Stamped {
		return last, false
	}
	stored, made, _ := r.unexplainedStamp(ctx, *s)
	if !made || request.Digest != digest.AnyCurrent && !madeAsDecided(stored, due.Managed) {
		return last, false
	}
	r.markUnwritten(s, due)
	return decidedReload(due, stored[stamp.Hash]), true
}

// madeAsDecided reports whether a stored stamp may be the one that was decided. A stored Record must be that of the decision, too: rollout undo
// brings one of earlier versions of the objects with the hash.
func madeAsDecided(stored, decided stamp.Managed) bool {
	recorded := stored[stamp.Record]
	return stored[stamp.Hash] == decided[stamp.Hash] && (recorded == "" || recorded == decided[stamp.Record])
}

// mayHaveStamped reports whether a request may have been handled although the answer does not say so. By the same generation, the template is
// the same, too; by a later one, a write of a user came before, which may have brought the stamp.
func mayHaveStamped(request poke.Request, answer poke.Result) bool {
	if request.Generation == 0 {
		return answer.Outcome == poke.Stale || answer.Outcome == poke.Purged || answer.Outcome == poke.Current
	}
	return answer.Outcome == poke.Stale && answer.Generation == generationAfter(request.Generation)
}

// reportedBefore reports whether the answer to a request has the earlier last-reload annotation. Only without a generation it can pass for a
// new one.
func reportedBefore(s gather.Subject, r poke.Request, answer record.LastReload) bool {
	if r.Generation != 0 {
		return false
	}
	last, err := record.ParseLastReload(s.View.Managed[stamp.LastReload])
	return err == nil && last.Time.Equal(answer.Time) && last.Hash == answer.Hash
}

// currentDigest returns the digest to ask with. A run before the stamp is one with the content that the webhook then verifies.
func (r requests) currentDigest(ctx context.Context, s gather.Subject, in policy.Input, verdict policy.Verdict) (string, error) {
	newest, ok := in.Ring.Newest()
	if !ok {
		return "", digest.ErrNoKey
	}
	unsettled := !r.backoff.IsOvertaken(s.Key) && r.gates.Unsettled(state.GateInput{Now: r.now(), LastEvent: s.Events.Last})
	if !isRunDue(s, verdict) && (r.asksForLive(s, in) || unsettled) {
		return digest.AnyCurrent, nil
	}
	if err := r.gather.Read(ctx, s, in, unread(in)); err != nil {
		return "", err
	}
	return digest.Hash(newest.ID, digest.Subset(in.Current, in.Refs))
}

// asksForLive reports whether the webhook has rejected so many requests that the next one asks for whatever it reads. A replica that has
// just started, or may not read its configuration, does not know the custom resources that this one knows: it would stamp without
// their changes, which would restart the pods once more.
func (r requests) asksForLive(s gather.Subject, in policy.Input) bool {
	limit := state.FewConflicts
	if slices.ContainsFunc(in.Refs, func(ref reference.Ref) bool { return ref.Kind.Custom() && in.Current[ref].Hold == nil }) {
		limit = state.ManyConflicts
		if r.now().Sub(s.Events.Last) < stillChanging {
			limit = state.SomeConflicts
		}
	}
	return r.backoff.Exceeds(s.Key, limit)
}

// stillChanging is how long ago the last change of a configuration is that changes all the time.
const stillChanging = 500 * time.Millisecond

// unread returns the tracked Refs that exist and whose content was not read: the digest is over all of them.
func unread(in policy.Input) []reference.Ref {
	var refs []reference.Ref
	for _, ref := range in.Refs {
		if state := in.Current[ref]; !state.Absent && state.Entries == nil && state.Hold == nil {
			refs = append(refs, ref)
		}
	}
	return refs
}

// explainNoReload explains why a poke was purged or rejected. Mostly another write was faster, or the state has moved on, which the caches
// will show soon. It remains where the stamp cannot be made, or is not what is stored.
func (r requests) explainNoReload(ctx context.Context, s gather.Subject, in policy.Input, outcome poke.Outcome, err error) failure {
	moved := failure{reason: reasonReloadFailed, soon: true, quiet: true, conflict: outcome == poke.Conflict, err: cmp.Or(err, fmt.Errorf(
		"the webhook reports that no reload is due (%s)", outcome))}
	if outcome == poke.Stale {
		moved.overtaken = true
		moved.err = errOvertaken
	}
	if outcome != poke.Current && outcome != poke.Purged {
		return moved
	}
	due, err := stamp.RequestReload(s.View, r.gather.WebhookInput(s, in.Ring, digest.Subset(in.Current, in.Refs)))
	switch {
	case err != nil:
		return failure{reason: reasonReloadFailed, err: err}
	case due.Stamped && r.backoff.HasFailedRepeatedly(s.Key):
		return r.explainLost(ctx, s, in)
	default:
		return moved
	}
}

// explainLost explains why a stamp that is due by the caches is never stored: nothing may be due.
func (r requests) explainLost(ctx context.Context, s gather.Subject, in policy.Input) failure {
	if _, f := r.judgeLive(ctx, s, in); f.err != nil {
		return f
	}
	return failure{reason: reasonLost, err: lost(s.Object.Kind)}
}
