package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// adoptions write the Records of what is there already.
type adoptions struct {
	*base

	notices notices
	idle    idle
	// direct means that no admission webhook of ours verifies a Record.
	direct bool
}

// adopt writes the Record: what is there now is what the pods have.
func (a adoptions) adopt(ctx context.Context, s gather.Subject, in policy.Input, found policy.Assessment) Outcome {
	a.notices.notifyStored(ctx, s)
	if ended := a.checkForeign(ctx, s, in.Known, found.Verdict.Foreign); ended != nil {
		return ended
	}
	replaced := ownerOf(in.Known, found.Verdict.Foreign)
	hash, key, born := s.View.Managed[stamp.Hash], a.annotations.ConfigRecord, a.state.Creations.Version(s.Key)
	in, outdated, err := a.gather.AsCreated(ctx, s, in, found.Verdict.Adopt)
	if err != nil {
		return failed{s, unreadable(err)}
	}
	in, appeared := a.gather.BeforeAppearance(s, in, found.Verdict.Adopt)
	outdated = outdated || appeared
	rec, err := found.Adopt(in, hash)
	if err != nil { // the digest key is a new one, and the graph has not yet read its custom resources with it
		return failed{s, failure{reason: reasonAdoptionFailed, err: err, soon: true, quiet: true}}
	}
	text, fits := rec.TextFor(in.Intent.Refs(), s.View.RecordBudget())
	a.events.Warn(s.Reported(), reasonTooLarge, a.tooLargeToRecord(fits, in, hash))
	if !fits {
		a.state.Creations.Keep(s.Key, born, nil) // nothing is going to record them
		return a.idle.end(ctx, s)                // the hash alone is compared, at the price of reads, or nothing
	}
	if ended := a.awaitWatches(ctx, s, found.Verdict.Adopt, text); ended != nil {
		return ended
	}
	answer, err := a.patchAnnotations(ctx, s, map[string]any{key: text})
	if err != nil {
		if a.keepRecord(ctx, s, text, err) {
			a.state.Creations.Recorded(s.Key, born)
			return adopted(s, outdated)
		}
		return failed{s, failedWrite(s.Object.Kind, reasonAdoptionFailed, err)}
	}
	a.state.Creations.Recorded(s.Key, born)
	in.Known = policy.KnownOf(hash, answer.Annotations[key])
	if len(policy.Assess(in).Verdict.Adopt) > 0 {
		return failed{s, a.explainNoRecord(s, reasonAdoptionFailed, answer.Annotations[key], a.gather.WhenUnrecorded(in, hash), replaced)}
	}
	a.wroteRecord(s)
	a.state.Takeovers.Record(s.Key, replaced, answer.ResourceVersion)
	a.metrics.adopted(s.Object.Kind)
	a.reportReplaced(s, found)
	log.FromContext(ctx).V(1).Info("recorded the current configuration without a reload", "workload", s.Key, "refs", len(found.Verdict.Adopt))
	return adopted(s, outdated)
}

// awaitWatches ends an adoption of what is older than what the pods may have started with: an API server that is behind has answered a list.
// What is stored is taken in, and the workload judged anew by that. Later changes are not: they are still to be found. Where a webhook verifies
// the Record, nothing needs to be read. Nor does it for a Record that was compared before, where its write has failed.
func (a adoptions) awaitWatches(ctx context.Context, s gather.Subject, refs []reference.Ref, text string) Outcome {
	since := a.state.Versions.Since(s.Key)
	if !a.direct || since == "" || a.state.Creations.Version(s.Key) != "" { // what a creation started with is read live as it is
		return nil
	}
	if a.state.Compared.Is(s.Key, since, text) {
		return nil
	}
	states, err := a.gather.Store.ReadLive(ctx, s.Key.Namespace, refs)
	if err != nil {
		return failed{s, unreadable(err)}
	}
	live := maps.Clone(states)
	maps.DeleteFunc(live, func(ref reference.Ref, read digest.State) bool {
		return read.Absent || ref.Kind.Custom() || reference.Later(read.ResourceVersion, since)
	})
	if a.recheck(ctx, s, live) {
		return Waiting(queue.After(time.Second, queue.Config))
	}
	a.state.Compared.Set(s.Key, since, text)
	return nil
}

// jobUnrecorded is what follows for a Job whose Record is not stored.
const jobUnrecorded = "a change does not create the Job again"

// explainNoRecord explains why the Record that is stored is not the one that was written. A webhook may see another state for a moment, but not
// for long; that of an installation with another key restores what was written under its own, the foreign one.
// What removes each Record is not tried as soon again after the next reload, either.
func (b *base) explainNoRecord(s gather.Subject, reason, stored, whenRemoved string, foreign digest.KeyID) failure {
	f := transientFailure(reason, notAccepted)
	f.stored, f.lasting = true, stored == "" && reason == reasonAdoptionFailed
	if stored == "" {
		f.err = errors.New(recordRemoved(whenRemoved))
	}
	if b.backoff.HasFailedRepeatedly(s.Key) || f.lasting && b.state.Warnings.IsWarned(s.Key, reason, state.DigestOf(f.text())) {
		f.soon, f.quiet = false, false
	}
	if !f.soon && stored != "" && foreign != "" {
		f = foreignKey(foreign)
		f.stored = true
	}
	return f
}

// adopted is the outcome of an adoption. outdated means that the configuration has changed since the pods started.
func adopted(s gather.Subject, outdated bool) Outcome {
	if outdated {
		return Waiting(queue.After(time.Second, queue.Config)) // or earlier, by the event of the write
	}
	return InOrder{s}
}

// adoptSuspended records the configuration that the pods of a suspended Job start with.
func (a adoptions) adoptSuspended(ctx context.Context, s gather.Subject) Outcome {
	in := a.gather.Input(s)
	if _, ended := a.assessLive(ctx, s, in); ended != nil {
		return ended
	}
	rec, err := policy.NewRecord(in, s.View.Managed[stamp.Hash], true)
	if err != nil {
		return failed{s, failure{reason: reasonAdoptionFailed, err: err}}
	}
	text, fits := rec.Text(s.View.RecordBudget())
	a.events.Warn(s.Reported(), reasonTooLarge, a.tooLargeToRecord(fits, in, s.View.Managed[stamp.Hash]))
	if !fits {
		return InOrder{s}
	}
	a.state.Writes.Adopted(s.Key, a.now())
	switch f := a.writeRecord(ctx, s, text, reasonAdoptionFailed); {
	case f.err == nil:
		a.metrics.adopted(s.Object.Kind)
	case !a.keepRecord(ctx, s, text, f.err):
		return failed{s, f}
	}
	return InOrder{s}
}

// storeKept writes the Record that is kept in memory only. The guard lets only Jobs be deleted whose configuration is recorded.
func (a adoptions) storeKept(ctx context.Context, s gather.Subject) Outcome {
	if f := a.writeRecord(ctx, s, s.View.Managed[stamp.Record], reasonRecreationFailed); f.err != nil {
		return failed{s, explainRefusal(f, jobUnchanged)}
	}
	return Waiting(queue.After(time.Second, queue.Retry)) // or earlier, by the event of this write
}

// writeRecord writes the Record of a Job, and returns why it is not stored; without an error if it is.
func (a adoptions) writeRecord(ctx context.Context, s gather.Subject, text, reason string) failure {
	key := a.annotations.ConfigRecord
	answer, err := a.patchAnnotations(ctx, s, map[string]any{key: text})
	switch {
	case err != nil:
		return failedWrite(s.Object.Kind, reason, err)
	case answer.Annotations[key] != text:
		return a.explainNoRecord(s, reason, answer.Annotations[key], jobUnrecorded, "")
	}
	a.wroteRecord(s)
	return failure{}
}

// keepRecord keeps the Record of a Job in memory where the permission to write it is missing, which is that to create Jobs again: nothing
// is due, and a change is found all the same. It reports false where the failure is another one.
func (a adoptions) keepRecord(ctx context.Context, s gather.Subject, text string, err error) bool {
	if !s.Object.Kind.CreateOnly || !apianswer.Unauthorized(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	a.state.Records.Keep(s.Key, s.Object.UID(), s.Object.Annotations()[a.annotations.ConfigRecord], text)
	log.FromContext(ctx).V(1).Info("kept the config-record of a Job in memory", "workload", s.Key, "error", textOf(err))
	return true
}

// ownerOf returns the foreign key of a valid Record, which another installation may write again and again. It is empty where the hash alone is
// known: it comes back by a rollback only, and is adopted each time.
func ownerOf(known policy.Known, foreign digest.KeyID) digest.KeyID {
	if known.Hash != "" {
		return ""
	}
	return foreign
}

// checkForeign looks for a foreign key once more, since the ring in memory may be old, and then allows each one of a Record to be taken over
// once: nil. Otherwise the outcome is what is in the way.
func (a adoptions) checkForeign(ctx context.Context, s gather.Subject, known policy.Known, id digest.KeyID) Outcome {
	if id == "" {
		return nil
	}
	since := a.state.Takeovers.RecordForeign(s.Key, id, a.now())
	read, err := a.gather.Keys.Refresh(ctx)
	if err != nil {
		return failed{s, failedWrite(notOfTheWorkload, reasonAdoptionFailed, err)}
	}
	_, found := a.gather.Keys.Ring().Key(id)
	switch {
	case found:
		return failed{s, transientFailure(reasonForeignKey, fmt.Sprintf("the key %s has just arrived", id))}
	case read.Before(since):
		return Waiting(queue.After(time.Second, queue.Retry)) // the key may be newer than the read; by then there is another one
	case ownerOf(known, id) == "", a.state.Takeovers.Allowed(s.Key, id):
		return nil
	case a.state.Takeovers.IsPending(s.Key, id, s.Object.ResourceVersion()):
		return failed{s, transientFailure(reasonForeignKey, "the watch has not shown yet that the config-record was adopted under another digest key")}
	default:
		return failed{s, foreignKey(id)}
	}
}

// reportReplaced reports that what was recorded under a lost key, or in a way that cannot be read, was adopted again.
func (a adoptions) reportReplaced(s gather.Subject, found policy.Assessment) {
	switch why := unusable(s.View.Managed, found.Verdict.Foreign, a.gather.Revision); {
	case why == "":
	case found.Proven():
		a.events.Warn(s.Reported(), reasonAdopted, why+": it is written again, and the config-hash proves that no change is missed")
	default:
		a.events.Warn(s.Reported(), reasonAdopted, why+": the current configuration is adopted as the running one")
	}
}

// unusable says why what is recorded cannot be compared with the current configuration; empty where it can, or where nothing is recorded.
// A hash that was never ours, such as that of SAP's program, has nothing of ours beside it. A revision digest is under no key.
func unusable(managed stamp.Managed, foreign digest.KeyID, revision bool) string {
	stored, hash := managed[stamp.Record], managed[stamp.Hash]
	rec, err := record.Parse(stored)
	switch {
	case stored != "" && err != nil:
		return fmt.Sprintf("the config-record was damaged (%s)", err)
	case foreign == "":
		return damagedHash(hash, rec)
	case stored != "" && rec.BelongsTo(hash):
		return fmt.Sprintf("the digest key %s of the config-record is lost", foreign)
	case !revision && (stored != "" || managed[stamp.LastReload] != ""):
		return fmt.Sprintf("the digest key %s of the config-hash is lost, or the config-hash is another program's", foreign)
	}
	return ""
}

// damagedHash says why a hash that no Record belongs to cannot be compared; empty where it can.
func damagedHash(hash string, rec record.Record) string {
	if _, keyed := digest.KeyOf(hash); hash == "" || keyed || rec.BelongsTo(hash) {
		return ""
	}
	return fmt.Sprintf("the config-hash was damaged (%s is not %d hexadecimal digits)", reference.Quote(hash), digest.HashSize)
}

// What follows for the change that is due where its Record does not fit.
const (
	changeUnreported = "the change is not reported until the config-record fits"
	podsUnrestarted  = "the pods are not restarted until the config-record fits"
)

// tooLargeText is the text of the Event about a Record that does not fit.
func tooLargeText(consequence string) string {
	return "the annotations are too large to record the config objects: " + consequence + "; list fewer objects, or shorten other annotations"
}

// tooLargeToRecord is tooLargeText for the Record of a workload that nothing is due for; empty if it fits.
func (b *base) tooLargeToRecord(fits bool, in policy.Input, hash string) string {
	if fits {
		return ""
	}
	return tooLargeText(b.gather.WhenUnrecorded(in, hash))
}
