package cronrun

import (
	"cmp"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Run is a Job of a CronJob, made for a reload with a content.
type Run struct {
	Job string
	// After is the last reload from before the Job was made.
	After string
	// Follows names the reload before the one that the Job belongs to; empty for none. Unlike After, it is the same after that one is
	// stamped. For a content that has come back before a stamp, it names the last Job.
	Follows string
	// Hash is the digest of the content, as the pod template bears it.
	Hash string
	// Content is the digest of that part of the content whose changes run the CronJob, under the key of the earlier Record.
	Content string
	// Same has the digests of the same content under other keys.
	Same []string
	// Replaces is the content of the last stamp, where the reload that the Job belongs to is not stamped yet.
	Replaces string
}

// IsDue reports whether a reload for some changes runs a CronJob besides stamping the template of its next run.
func IsDue(kind workload.Kind, intent annotation.Intent, changes []policy.Change) bool {
	return kind.Schedules() && slices.ContainsFunc(changes, func(c policy.Change) bool {
		if c.Ref == policy.Any {
			return len(intent.AtOnce().Tracked) > 0
		}
		return IsAtOnce(intent.Tracked[c.Ref], c.Type)
	})
}

// IsAtOnce reports whether a change runs a CronJob, and creates a Job again.
func IsAtOnce(trigger annotation.Trigger, change policy.ChangeType) bool {
	switch change {
	case policy.Created:
		return trigger.AtOnceOnCreate
	case policy.Deleted:
		return trigger.AtOnceOnDelete
	default:
		return trigger.AtOnce
	}
}

// Of returns the run with the states that a stamp is made from. A change of what is tracked without running the CronJob, between two
// attempts at the reload, makes it no other run; neither does a rotation of the digest key: the Record keeps its key until the stamp.
func Of(view stamp.View, ring digest.Ring, states map[reference.Ref]digest.State) (due Run, err error) {
	newest, ok := ring.Newest()
	if !ok {
		return Run{}, digest.ErrNoKey
	}
	if due.Hash, err = digest.Hash(newest.ID, digest.Subset(states, view.Intent.Refs())); err != nil {
		return Run{}, err
	}
	due.Follows, _ = reloads(view)
	content, named := digest.Subset(states, view.Intent.AtOnce().Refs()), newest.ID
	if known, ok := ring.Key(view.Known().Key()); ok {
		named = known.ID
	}
	if due.Content, err = digest.Hash(named, content); err != nil {
		return Run{}, err
	}
	due.Replaces = Recorded(view).Content
	for _, key := range ring.Keys() {
		if same, err := digest.Hash(key.ID, content); err == nil && key.ID != named {
			due.Same = append(due.Same, same)
		}
	}
	return due, nil
}

// Recorded returns the run with the content that was stamped last. Without a Record, any change runs the CronJob.
func Recorded(view stamp.View) Run {
	due := Run{Hash: view.Managed[stamp.Hash], Content: view.Managed[stamp.Hash]}
	_, due.Follows = reloads(view)
	known := view.Known().Record
	if known.Empty() {
		return due
	}
	entries := map[reference.Ref]string{}
	for ref, item := range known.Items(view.Intent.AtOnce().Refs()) {
		entries[ref] = item.Entry
	}
	due.Content = digest.HashRecorded(known.Key, entries)
	return due
}

// reloads names the last reload of a workload and the one before that, as each last-reload that follows keeps them; empty for none.
func reloads(view stamp.View) (last, before string) {
	explained, err := record.ParseLastReload(view.Managed[stamp.LastReload])
	if err != nil {
		return "", ""
	}
	all := explained.All()
	if len(all) > 1 {
		before = NameOf(all[1])
	}
	return NameOf(all[0]), before
}

// LastReload returns the last reload of a workload that was created at a time; false if it is not that of its pod template, or was copied from
// another workload.
func LastReload(view stamp.View, created time.Time) (record.LastReload, bool) {
	last, err := record.ParseLastReload(view.Managed[stamp.LastReload])
	return last, err == nil && last.BelongsTo(view.Managed[stamp.Hash]) && !last.Time.Before(created)
}

// JobNames returns the names that the Jobs of the reloads of a CronJob may have, as far as last-reload keeps them, for one content. A later
// reload that does not run the CronJob leaves the content as it is.
func (c CronJob) JobNames(view stamp.View, content string) []string {
	names := []string{c.JobName("", content)}
	if explained, err := record.ParseLastReload(view.Managed[stamp.LastReload]); err == nil {
		for _, reload := range explained.All() {
			names = append(names, c.JobName(NameOf(reload), content))
		}
	}
	return names
}

// NameOf names a reload, however much is known of it.
func NameOf(r record.LastReload) string { return r.Time.Format(time.RFC3339Nano) + " " + r.Hash }

// NeedsAnother reports whether a Job must follow a reload with what the webhook has read: its own one was made for another content, or what
// runs the CronJob has changed as well, as the loop had not seen. The Run is empty where no Job was made.
func (r Run) NeedsAnother(kind workload.Kind, intent annotation.Intent, seen []policy.Change, last record.LastReload) bool {
	if r.Job != "" {
		return r.Hash != cmp.Or(last.Digest, last.Hash) // with --hash=revision, the hash of the reload is no digest of the content
	}
	stamped := policy.ChangesOf(last)
	if last.More > 0 && len(last.Changes)+last.More > len(seen) {
		stamped = append(stamped, policy.Change{Ref: policy.Any}) // of those that it does not name, some may not have been seen
	}
	return !IsDue(kind, intent, seen) && IsDue(kind, intent, stamped)
}

// ChangesOfReload returns the changes of configuration that may have run a CronJob before or after a reload.
func ChangesOfReload(last record.LastReload) []policy.Change {
	if last.Cause != record.CauseConfigChange {
		return ChangesOfWrite(last)
	}
	changes := policy.ChangesOf(last)
	if last.More > 0 {
		changes = append(changes, policy.Change{Ref: policy.Any})
	}
	return changes
}

// ChangesOfWrite returns the changes of configuration that a user's write of the workload has brought. What the write itself has added to
// the lists, or taken from them, has not changed.
func ChangesOfWrite(last record.LastReload) []policy.Change {
	if last.Cause != record.CauseRelease && last.Cause != record.CauseListEdit {
		return nil
	}
	brought := slices.DeleteFunc(policy.ChangesOf(last), func(c policy.Change) bool {
		return c.Type == record.Listed || c.Type == record.Unlisted
	})
	if last.More > 0 && last.Cause == record.CauseRelease {
		brought = append(brought, policy.Change{Ref: policy.Any})
	}
	return brought
}
