package reload

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// adopt writes the Record: what is there now is what the pods have.
func (l *loop) adopt(ctx context.Context, s subject, in policy.Input, a policy.Assessment) reconcile.Result {
	hash := s.view.Marks[stamp.Hash]
	rec, err := a.Adopt(in, hash)
	if err != nil {
		return l.retry(ctx, s, trouble{reason: "AdoptionFailed", err: err})
	}
	text, fits := rec.Text(s.view.RecordRoom())
	l.warn(s, reasonNoRoom, noRoom(fits))
	if !fits {
		return l.purge(ctx, s) // the hash alone is compared, at the price of reads
	}
	key := l.opts.Reader.Keys.ConfigRecord
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.object.ResourceVersion(),
		"annotations":     map[string]string{key: text},
	}})
	if err != nil {
		return l.retry(ctx, s, trouble{reason: "AdoptionFailed", err: err})
	}
	answer := metadataOf(s)
	if err := l.patch(ctx, s, answer, client.RawPatch(types.MergePatchType, body)); err != nil {
		return l.retry(ctx, s, failedWrite("AdoptionFailed", err))
	}
	in.Known = policy.KnownOf(hash, answer.Annotations[key])
	if len(policy.Assess(in).Verdict.Adopt) > 0 {
		s.stored = true
		// The webhook may see another state for a moment, but not for long.
		passing := l.backoff.soon.NumRequeues(s.key) < persistent
		return l.retry(ctx, s, trouble{reason: "AdoptionFailed", soon: passing, quiet: true, err: errors.New(
			"the webhook did not accept the config-record: it sees another state or has another digest key")})
	}
	l.memory.contests.Wrote(s.key, s.view.Marks[stamp.Record], l.now())
	l.memory.AdoptedForeign(s.key, a.Verdict.Foreign)
	l.metrics.adopted(s.object.Kind)
	l.reportLostKey(s, a.Verdict)
	log.FromContext(ctx).V(1).Info("Adopted", "workload", s.key, "refs", len(a.Verdict.Adopt))
	return l.inOrder(s)
}

// noRoom is the text of the Event about a Record that does not fit; empty if it does.
func noRoom(fits bool) string {
	if fits {
		return ""
	}
	return "the annotations leave no room to record the config objects: a change still restarts pods that were stamped once, " +
		"but its cause cannot be named; name fewer objects, or shorten other annotations"
}

// newerRecord is the text of the Event about a Record that cannot be read; empty if it can.
func newerRecord(known policy.Known) string {
	if !known.Newer {
		return ""
	}
	return "a newer version of pod-reloader has recorded the running configuration: changes are not acted upon; upgrade this one"
}
