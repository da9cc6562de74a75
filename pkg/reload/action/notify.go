package action

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// notices report Changes to --webhook-url.
type notices struct{ *base }

// notify reports a Change instead of reloading. One write adopts what is there, so that the Change is not due any more; of
// several leaders one succeeds with it, and offers the notification after it; where its answer is lost, once the Record is seen to be
// stored. Before, the notification must be sure to get into the queue. What is there is read live: nothing takes back a notification that was made because a watch is behind. Where the webhook sees
// another state, it restores the Record: then nothing is reported, and the Change stays due.
func (n notices) notify(ctx context.Context, s gather.Subject, in policy.Input) Outcome {
	n.notifyStored(ctx, s)
	if !n.events.AcceptsNotified(s.Reported()) {
		return failed{s, transientFailure(reasonReloadFailed, "the change is not posted to --webhook-url yet, because too many notifications of the "+
			"namespace wait to be posted; it is posted later")}
	}
	verdict, ended := n.assessLive(ctx, s, in)
	if ended != nil {
		return ended
	}
	hash, key := s.View.Managed[stamp.Hash], n.annotations.ConfigRecord
	rec, err := policy.RecordNotified(in, hash)
	if err != nil {
		return failed{s, failure{reason: reasonReloadFailed, err: err}}
	}
	text, fits := rec.TextFor(in.Intent.Refs(), s.View.RecordBudget())
	if !fits {
		return failed{s, failure{reason: reasonTooLarge, err: errors.New(tooLargeText(changeUnreported))}}
	}
	// Once it is stored, no leader finds the Change again: the end of this process does not cut off the answer.
	answer, err := n.patchAnnotations(context.WithoutCancel(ctx), s, map[string]any{key: text})
	if err != nil {
		if apianswer.MayBeStored(err) {
			n.state.Notices.Unanswered(s.Key, s.Object.ResourceVersion(), text, verdict.Changes)
		}
		return failed{s, failedNotice(s, err)}
	}
	n.state.Notices.Forget(s.Key) // this write shows that the earlier ones of this version were not stored
	in.Known = policy.KnownOf(hash, answer.Annotations[key])
	if left := policy.Assess(in).Verdict; left.Action != policy.Nothing || len(left.Adopt) > 0 {
		f := transientFailure(reasonReloadFailed, notAccepted+"; or the webhook runs without --webhook-url")
		if answer.Annotations[key] == "" {
			f = transientFailure(reasonReloadFailed, recordRemoved("the change is not posted to --webhook-url"))
		}
		f.stored = true
		return failed{s, f}
	}
	n.state.Writes.RecordWrite(s.Key, answer.Generation, n.now())
	n.wroteRecord(s)
	n.notified(ctx, s, verdict.Changes, text)
	return InOrder{s}
}

// failedNotice is failedWrite for the Record of a Change that is reported. The permission to patch Jobs is not granted by default.
func failedNotice(s gather.Subject, err error) failure {
	f := failedWrite(s.Object.Kind, reasonReloadFailed, err)
	if f.refused && !apierrors.IsUnauthorized(err) && s.Object.Kind.CreateOnly {
		f.err = fmt.Errorf("the change is not posted to --webhook-url, because pod-reloader may not patch the Job to record it; %s; "+
			"or leave Jobs out by --ignored-workload-types=jobs: %w", grantRecreation, f.err)
	}
	return f
}

// notified offers a notification, which the Record that was written names.
func (n notices) notified(ctx context.Context, s gather.Subject, changes []policy.Change, text string) {
	n.events.EmitNotified(s.Reported(), changes, text)
	log.FromContext(ctx).Info("notified instead of reloading", "workload", s.Key, "changes", policy.Describe(changes))
}

// notifyStored offers the notification about a Change whose Record was stored by a write without an answer.
func (n notices) notifyStored(ctx context.Context, s gather.Subject) {
	text := s.View.Managed[stamp.Record]
	if changes := n.state.Notices.Stored(s.Key, s.Object.ResourceVersion(), text); len(changes) > 0 {
		n.notified(ctx, s, changes, text)
	}
}
