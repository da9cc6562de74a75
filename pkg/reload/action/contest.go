package action

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// The reasons of the Events about what another writer undoes.
const (
	reasonRecordContested  = "RecordContested"
	reasonRequestContested = "RequestContested"
	reasonPauseContested   = "PauseContested"
)

// contest is about something that another writer undoes.
type contest struct {
	// reason and text are those of the Event.
	reason, text string
}

// findWriter is what a user does about another writer.
const findWriter = ": find the writer in metadata.managedFields, and "

// RecordContested returns how long to wait because another writer undoes each write of the Record, and reports that; 0 if it does not.
func (a *Actions) RecordContested(ctx context.Context, s gather.Subject) time.Duration {
	wait := a.state.Contests.Wait(s.Key, a.storedRecord(s), a.now())
	return a.contested(ctx, s, wait, contest{
		reason: reasonRecordContested,
		text: "another writer removes or overwrites the annotation config-record after each write; " +
			"pod-reloader writes it less and less often, and may miss changes of configuration meanwhile" + findWriter +
			"make it keep annotations that it does not own",
	})
}

// wroteRecord records that the Record of a workload was written, in place of the stored one.
func (b *base) wroteRecord(s gather.Subject) {
	b.events.Clear(s.Reported(), reasonAdoptionFailed)
	b.state.Compared.Forget(s.Key)
	b.state.Contests.Wrote(s.Key, b.storedRecord(s), b.now())
}

// storedRecord returns the text of the Record that is stored, also where another one is kept in memory.
func (b *base) storedRecord(s gather.Subject) string {
	if s.Unrecorded {
		return s.Object.Annotations()[b.annotations.ConfigRecord]
	}
	return s.View.Managed[stamp.Record]
}

// removalContested returns how long to wait because another writer sets an annotation again after each removal, and reports that;
// 0 if it does not. what says what the removal ends.
func (b *base) removalContested(ctx context.Context, s gather.Subject, annotation, reason, what string) time.Duration {
	wait := b.state.Contests.WaitToRemove(s.Key, annotation, b.now())
	return b.contested(ctx, s, wait, contest{
		reason: reason,
		text: "another writer sets the annotation " + annotation + " again after each removal; pod-reloader " + what + " less and less often" +
			findWriter + "take the annotation out of what it applies",
	})
}

// contested reports a contest that there is a wait for, once, and returns the wait.
func (b *base) contested(ctx context.Context, s gather.Subject, wait time.Duration, c contest) time.Duration {
	if wait <= 0 {
		return 0
	}
	if !b.state.Warnings.IsWarned(s.Key, c.reason, state.DigestOf(c.text)) {
		log.FromContext(ctx).Info("another writer undoes each write of an annotation", "workload", s.Key, "event", c.reason, "after", wait)
	}
	b.events.Warn(s.Reported(), c.reason, c.text)
	return wait
}
