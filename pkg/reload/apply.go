package reload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/absence"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reload asks the webhook for the reload, or stamps by itself where there is none.
func (l *loop) reload(ctx context.Context, s subject, in policy.Input, verdict policy.Verdict) reconcile.Result {
	l.due(s)
	if !l.opts.Webhook {
		return l.stamp(ctx, s, verdict)
	}
	proof, err := l.proof(ctx, s, in)
	if err != nil {
		return l.retry(ctx, s, unreadable(err))
	}
	request := poke.Request{
		GroupVersionKind: s.object.Kind.GroupVersionKind,
		Namespace:        s.key.Namespace,
		Name:             s.key.Name,
		Digest:           proof,
		Generation:       s.object.Generation(),
		Keys:             l.opts.Reader.Keys,
	}
	var result poke.Result
	err = l.write(ctx, s, func(ctx context.Context) (err error) {
		result, err = poke.Do(ctx, l.client, request, fieldOwner)
		return err
	})
	l.metrics.poked(result.Outcome)
	if result.Outcome == poke.Reloaded && s.reportedBefore(request, result.LastReload) {
		result.Outcome = poke.Purged
	}
	switch result.Outcome {
	case poke.Reloaded:
		return l.done(ctx, s, verdict, result.LastReload, request.Generation+1)
	case poke.Unseen:
		log.FromContext(ctx).Info("No webhook looked at the write; stamping directly", "workload", s.key)
		s.stored = true
		return l.stamp(ctx, s, verdict)
	case poke.Current, poke.Purged, poke.Stale, poke.Conflict:
		return l.retry(ctx, s, l.unmoved(s, in, result.Outcome, err))
	default:
		return l.retry(ctx, s, failedWrite("ReloadFailed", err))
	}
}

// reportedBefore reports whether the answer to a request for the live state has the last-reload annotation of before. Only without a
// generation it can pass for a new one.
func (s subject) reportedBefore(r poke.Request, answer record.LastReload) bool {
	if r.Generation != 0 || r.Digest != digest.Live {
		return false
	}
	last, err := record.ParseLastReload(s.view.Marks[stamp.LastReload])
	return err == nil && last.Time.Equal(answer.Time) && last.Hash == answer.Hash
}

// proof returns the digest to ask with.
func (l *loop) proof(ctx context.Context, s subject, in policy.Input) (string, error) {
	newest, ok := in.Ring.Newest()
	if !ok {
		return "", digest.ErrNoKey
	}
	if l.backoff.insists(s.key) || l.gates.restless(l.moment(s)) {
		return digest.Live, nil
	}
	if err := l.read(ctx, s, in, unread(in)); err != nil {
		return "", err
	}
	return digest.Hash(newest.ID, digest.Subset(in.Current, in.Intent.Refs()))
}

// fieldOwner names the loop in managedFields.
const fieldOwner = client.FieldOwner("pod-reloader")

// unread returns the tracked Refs that exist and whose content was not read: the digest is over all of them.
func unread(in policy.Input) []reference.Ref {
	return slices.DeleteFunc(in.Intent.Refs(), func(ref reference.Ref) bool {
		state := in.Current[ref]
		return state.Absent || state.Entries != nil
	})
}

// unmoved says why a poke was purged or rejected. Mostly somebody was faster, or the state has moved on, which the caches
// will show soon. It remains where the stamp cannot be made, or is not what is stored.
func (l *loop) unmoved(s subject, in policy.Input, outcome poke.Outcome, err error) trouble {
	passing := trouble{reason: "ReloadFailed", soon: true, quiet: true, conflict: outcome == poke.Conflict, err: cmp.Or(err, fmt.Errorf(
		"the webhook reports that no reload is due (%s)", outcome))}
	if outcome != poke.Current && outcome != poke.Purged {
		return passing
	}
	due, err := played(s.view, l.liveState(s, in.Ring, digest.Subset(in.Current, in.Intent.Refs())))
	switch {
	case err != nil:
		return trouble{reason: "ReloadFailed", err: err}
	case due.Stamped && l.backoff.soon.NumRequeues(s.key) >= persistent:
		return trouble{reason: reasonLost, err: lost(s.object.Kind)}
	default:
		return passing
	}
}

// done closes a reload that was made, and that gave the workload a generation.
func (l *loop) done(
	ctx context.Context, s subject, verdict policy.Verdict, last record.LastReload, generation int64,
) reconcile.Result {
	l.memory.Wrote(s.key, generation, l.now())
	l.memory.Stamped(s.key, generation, l.now())
	l.warn(s, reasonLost, "") // it is another stamp: where this one is lost as well, that is news
	if !s.events.first.IsZero() {
		l.metrics.latency(s.object.Kind, l.now().Sub(s.events.first))
	}
	l.emitOwn(s, last)
	log.FromContext(ctx).Info("Reloaded", "workload", s.key, "changes", policy.Describe(verdict.Changes, 8), "hash", last.Hash)
	return l.inOrder(s)
}

// stamp writes what the webhook would have written, by the same rules: the reload is played as a poke that the webhook
// sees. Tests in the patch pin the marks it was computed from.
func (l *loop) stamp(ctx context.Context, s subject, verdict policy.Verdict) reconcile.Result {
	u := emptyObject(s.object.Kind)
	if err := l.live.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name}, u); err != nil {
		if absence.Certain(err) {
			return l.inOrder(s)
		}
		return l.retry(ctx, s, failedWrite("ReloadFailed", err))
	}
	o := workload.Object{Kind: s.object.Kind, Raw: u.Object}
	view, _ := l.opts.Reader.Read(o)
	states, err := l.store.Live(ctx, s.key.Namespace, view.Intent.Refs())
	if err != nil {
		return l.retry(ctx, s, unreadable(err))
	}
	result, err := played(view, l.liveState(s, l.keys.Ring(), states))
	if err != nil {
		return l.retry(ctx, s, trouble{reason: "ReloadFailed", err: err, soon: true})
	}
	ops := stamp.Operations(o, l.opts.Reader.Keys, result.Marks)
	if len(ops) == 0 {
		return l.inOrder(s)
	}
	body, err := json.Marshal(append(stamp.Guard(o, l.opts.Reader.Keys), ops...))
	if err != nil {
		return l.retry(ctx, s, trouble{reason: "ReloadFailed", err: err})
	}
	answer := metadataOf(s)
	if err := l.patch(ctx, s, answer, client.RawPatch(types.JSONPatchType, body)); err != nil {
		return l.retry(ctx, s, failedPin("ReloadFailed", err))
	}
	l.memory.contests.Wrote(s.key, view.Marks[stamp.Record], l.now())
	l.metrics.wroteDirectly(s.object.Kind)
	if !result.Stamped {
		l.memory.Wrote(s.key, answer.Generation, l.now())
		return l.inOrder(s)
	}
	last, _ := record.ParseLastReload(result.Marks[stamp.LastReload])
	return l.done(ctx, s, verdict, last, answer.Generation)
}

// liveState is what the webhook would have read.
func (l *loop) liveState(s subject, ring digest.Ring, states map[reference.Ref]digest.State) stamp.Live {
	return stamp.Live{
		States: states, Ring: ring, Namespace: s.key.Namespace, Now: l.now(),
		Revision: l.opts.Revision, ReloadMissingRequired: l.opts.ReloadMissingRequired,
	}
}

// played returns what the webhook would decide about a poke of the stored workload. The error says that it would not let
// it pass, or could not stamp it: then nothing may be written.
func played(stored stamp.View, live stamp.Live) (stamp.Result, error) {
	req := pokeRequest(stored)
	result := stamp.Choose(req).Apply(req, live)
	switch {
	case result.Reject != nil:
		return stamp.Result{}, errors.New(result.Reject.Message)
	case !result.Stamped && len(result.Warnings) > 0:
		return stamp.Result{}, errors.New(result.Warnings[0])
	}
	return result, nil
}

// pokeRequest returns the admission request that a poke of the stored workload would be.
func pokeRequest(stored stamp.View) stamp.Request {
	before, after := stored, stored
	before.Marks = stored.Marks.Without(stamp.Dummy)
	after.Marks = maps.Clone(before.Marks)
	after.Marks[stamp.Dummy] = digest.Live + "@" + strconv.FormatInt(stored.Generation, 10)
	return stamp.Request{Old: before, New: after}
}

// purge removes a dummy that was stored while no webhook answered, and closes the treatment: nobody waits for it any more.
func (l *loop) purge(ctx context.Context, s subject) reconcile.Result {
	if _, stored := s.view.Marks[stamp.Dummy]; !stored {
		return l.inOrder(s)
	}
	if !l.mayWrite(s, inflight.Background) {
		return reconcile.Result{}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.object.ResourceVersion(),
		"annotations":     map[string]any{l.opts.Reader.Keys.ConfigHash: nil},
	}})
	if err != nil {
		return l.retry(ctx, s, trouble{reason: "PurgeFailed", err: err})
	}
	if err := l.patch(ctx, s, metadataOf(s), client.RawPatch(types.MergePatchType, body)); err != nil {
		return l.retry(ctx, s, failedWrite("PurgeFailed", err))
	}
	return l.inOrder(s)
}

// patch sends a patch of a workload that has a slot for its writes, and reads the answer.
func (l *loop) patch(ctx context.Context, s subject, answer client.Object, patch client.Patch) error {
	return l.write(ctx, s, func(ctx context.Context) error { return l.client.Patch(ctx, answer, patch, fieldOwner) })
}

func metadataOf(s subject) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(s.object.Kind.GroupVersionKind)
	m.SetNamespace(s.key.Namespace)
	m.SetName(s.key.Name)
	return m
}
