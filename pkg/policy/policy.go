// Package policy decides what is due for a workload: reload, hold or nothing, and why.
//
// Assess is a chain of small named functions over values: what the workload asks for, which configuration its running
// pods are known to have, and what the configuration is now. The loop asks it whether to poke, the webhook whether to
// stamp, `why` what to explain; so all three give the same answer.
package policy

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Action is what a Verdict calls for.
type Action string

const (
	// Nothing is due.
	Nothing Action = "nothing"
	// Reload is due: the running pods do not have the current configuration.
	Reload Action = "reload"
	// Hold means that a reload is due, but new pods could not start.
	Hold Action = "hold"
)

// ChangeType says how a Ref differs from its known state.
type ChangeType string

const (
	// Created means that the object was recorded as absent and exists.
	Created ChangeType = record.Created
	// Modified means that the object's content differs.
	Modified ChangeType = record.Modified
	// Deleted means that the object was recorded with a content and is absent.
	Deleted ChangeType = record.Deleted
)

// Any is the Ref of a Change where only the config-hash was known and it differs: any of the tracked objects.
var Any = reference.Ref{Kind: "*"}

// Change is a tracked Ref whose current state differs from the known one.
type Change struct {
	Ref  reference.Ref
	Type ChangeType
}

// String returns the text of a Change as Events show it, e.g. "configmap/app modified".
func (c Change) String() string {
	if c.Ref == Any {
		return "a tracked object " + string(c.Type)
	}
	return c.Ref.String() + " " + string(c.Type)
}

// NewLastReload returns the last reload that Changes cause at some time, after the one of a text; what cannot be read is none. The caller
// adds what the reload has written.
func NewLastReload(changes []Change, at time.Time, earlier string) record.LastReload {
	last := record.LastReload{Time: at.UTC().Truncate(time.Millisecond), Cause: record.CauseConfigChange}
	for _, c := range changes {
		last.Changes = append(last.Changes, c.record())
	}
	if before, err := record.ParseLastReload(earlier); err == nil {
		last = last.After(before)
	}
	return last
}

// record returns the Change as a last reload keeps it.
func (c Change) record() record.Change {
	if c.Ref == Any {
		return record.Change{Ref: string(Any.Kind), Type: string(c.Type)}
	}
	return record.Change{Ref: c.Ref.String(), Type: string(c.Type)}
}

// ChangesOf returns the Changes that a last reload names. What cannot be read may be any object.
func ChangesOf(last record.LastReload) []Change {
	var changes []Change
	for _, c := range last.Changes {
		ref, err := reference.Parse(c.Ref)
		if err != nil {
			ref = Any
		}
		changes = append(changes, Change{Ref: ref, Type: ChangeType(c.Type)})
	}
	return changes
}

// Describe joins Changes for a message: it names the first eight, and counts the others.
func Describe(changes []Change) string { return reference.List(changes, reference.MaxNamed) }

// Input is all that a decision depends on.
type Input struct {
	// Namespace of the workload.
	Namespace string
	// Intent is what the workload asks for.
	Intent annotation.Intent
	// Refs are those of the Intent, sorted, where the caller has them: a workload may have thousands. nil sorts them again.
	Refs []reference.Ref
	// Required are the Refs without which the workload's pods cannot start.
	Required map[reference.Ref]bool
	// Known is the configuration that the running pods are known to have.
	Known Known
	// Current is the state of every tracked Ref now. Contents may be unread (no Entries) where the Assessment does not ask
	// for them; a Ref of which nothing is known may be missing until it is read.
	Current map[reference.Ref]digest.State
	// Ring holds the digest keys. What was recorded under another key cannot be compared.
	Ring digest.Ring
	// ReloadMissingRequired makes the deletion of a required object a Change like any other (--missing-required=reload).
	ReloadMissingRequired bool
}

// refs returns the tracked Refs, sorted. They are shared: do not change them.
func (in Input) refs() []reference.Ref {
	if in.Refs != nil {
		return in.Refs
	}
	return in.Intent.Refs()
}

// Unseen returns the objects that exist by some states, and that an Intent tracks because nothing else is known of them, sorted. Their
// labels and annotations may say otherwise.
func Unseen(intent annotation.Intent, current map[reference.Ref]digest.State) []reference.Ref {
	var unseen []reference.Ref
	for ref := range intent.Unseen {
		if len(current[ref].Entries) > 0 {
			unseen = append(unseen, ref)
		}
	}
	slices.SortFunc(unseen, reference.Ref.Compare)
	return unseen
}

// Verdict is the decision about one workload.
type Verdict struct {
	Action Action
	// Reason explains the Action to a user, in a sentence fragment.
	Reason string
	// Changes are those that call for the reload, or that are held, ordered by Ref.
	Changes []Change
	// Adopt are the Refs whose current state belongs into the Record without a restart, ordered.
	Adopt []reference.Ref
	// Foreign is the id of the key that the Record was made under, if the ring does not hold it; where the config-hash is all that is known, it
	// is that of the hash, which may also be another program's, or SAP's digest. The Refs concerned are in Adopt. The ring may be old: its
	// owner has to read the keys first.
	Foreign digest.KeyID
}

// Assessment is a Verdict with what it still lacks.
type Assessment struct {
	Verdict Verdict
	// Reads are the tracked Refs, ordered, whose content must be read before the Verdict is final and Adopt can work.
	// Until then, a Ref without the content it needs counts as unchanged.
	Reads []reference.Ref
	// MayReload says that a reload is due or held, or may be once the Reads are made. Otherwise there is nothing that
	// could be postponed.
	MayReload bool

	stamped, current, outdated bool
}

// Proven reports whether the hash of the template proves that the pods were started with what is to be adopted.
func (a Assessment) Proven() bool { return a.stamped }

// Current reports whether the config-hash is all that is known, and is that of the current state of all tracked Refs, under its own key.
func (a Assessment) Current() bool { return a.current }

// Outdated reports whether the config-hash is all that is known, and is not that of the current state, which is no Change where tracking
// depends on config objects: the hash may be over other Refs.
func (a Assessment) Outdated() bool { return a.outdated }

// Assess compares the known state with the current one.
func Assess(in Input) Assessment {
	in.Current, in.Ring = in.Known.Keep(in.Current, in.Ring)
	found := compare(in)
	v := Verdict{Adopt: found.adopt, Foreign: found.foreign}
	for _, check := range checks() {
		if action, changes, reason := check(in, found); reason != "" {
			v.Action, v.Changes, v.Reason = action, changes, reason
			break
		}
	}
	return Assessment{
		Verdict: v, Reads: found.reads, MayReload: v.Action != Nothing || found.undecided,
		stamped: found.stamped, current: found.current, outdated: found.outdated,
	}
}

// check is one link of the chain: it either decides, with a reason, or leaves the workload to the next.
type check func(Input, findings) (Action, []Change, string)

// checks returns the chain in the order in which it is asked. The last one always decides.
func checks() []check {
	return []check{notAsked, nothingTracked, newerRecord, holdMissing, reloadChanged, firstSeen, waitsForCustom, upToDate}
}

// notAsked leaves alone a workload that asks for nothing.
func notAsked(in Input, _ findings) (Action, []Change, string) {
	if in.Intent.Asked {
		return Nothing, nil, ""
	}
	return Nothing, nil, "no annotation asks for reloads"
}

// nothingTracked leaves alone a workload that asks for nothing that there is, or can be.
func nothingTracked(in Input, _ findings) (Action, []Change, string) {
	if len(in.Intent.Tracked) > 0 {
		return Nothing, nil, ""
	}
	return Nothing, nil, "the annotations select no object"
}

// NewerRecord is the reason why nothing is done about a Record that cannot be read.
const NewerRecord = "a newer version of pod-reloader has written the config-record: changes restart nothing; upgrade this one"

// newerRecord leaves alone what it cannot read.
func newerRecord(in Input, _ findings) (Action, []Change, string) {
	if !in.Known.Newer {
		return Nothing, nil, ""
	}
	return Nothing, nil, NewerRecord
}

// holdMissing holds every reload while an object that the pods need to start is deleted, whether or not its deletion
// would trigger one.
func holdMissing(in Input, found findings) (Action, []Change, string) {
	if in.ReloadMissingRequired || len(found.changes) == 0 || len(found.missing) == 0 {
		return Nothing, nil, ""
	}
	return Hold, found.missing, HeldBy(Describe(found.missing))
}

// HeldBy is the reason why a reload is held, with the missing objects as a list.
func HeldBy(missing string) string {
	return "new pods could not start: " + missing + "; create it again, or make the reference optional"
}

// reloadChanged reloads for any Change that triggers.
func reloadChanged(_ Input, found findings) (Action, []Change, string) {
	if len(found.changes) == 0 {
		return Nothing, nil, ""
	}
	return Reload, found.changes, Describe(found.changes)
}

// firstSeen restarts nothing for what is not known yet.
func firstSeen(_ Input, found findings) (Action, []Change, string) {
	if len(found.adopt) == 0 {
		return Nothing, nil, ""
	}
	return Nothing, nil, "first seen: the current configuration is adopted as the running one"
}

// waitsForCustom adopts nothing of a custom resource whose state cannot be trusted.
func waitsForCustom(in Input, found findings) (Action, []Change, string) {
	if len(found.held) == 0 {
		return Nothing, nil, ""
	}
	return Nothing, nil, "waiting for " + reference.List(found.held, reference.MaxNamed) + ": " + in.Current[found.held[0]].Hold.Reason
}

// UpToDate is the reason where nothing differs.
const UpToDate = "the pods have the current configuration"

// upToDate is what remains.
func upToDate(Input, findings) (Action, []Change, string) {
	return Nothing, nil, UpToDate
}
