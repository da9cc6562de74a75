package policy

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// findings is what the comparison of known and current state finds.
type findings struct {
	// changes are those that trigger.
	changes []Change
	// missing are required objects that the pods were started with and that are gone, triggering or not.
	missing []Change
	// adopt are the Refs whose current state belongs into the Record without a restart.
	adopt []reference.Ref
	// stamped says that those to adopt are what the pods were started with: the hash alone proves it.
	stamped bool
	// current and outdated say that the hash, of which nothing else is known, is that of the current state of all tracked Refs, or is not.
	current, outdated bool
	// foreign is the id of the key that the Record was made under, or the hash of which nothing else is known, if the ring does not hold it.
	foreign digest.KeyID
	// held are custom resources of which nothing is known: they neither change nor are adopted.
	held []reference.Ref
	// reads are the Refs whose content must be read first, and undecided says that a Change may come of it.
	reads     []reference.Ref
	undecided bool
}

func compare(in Input) findings {
	switch {
	case in.Known.Newer:
		return findings{}
	case in.Known.Hash != "":
		return compareHash(in)
	default:
		return compareRecord(in)
	}
}

// compareRecord compares Ref by Ref.
func compareRecord(in Input) findings {
	var f findings
	refs := in.refs()
	items := in.Known.Record.Items(refs)
	_, owned := in.Ring.Key(in.Known.Record.Key)
	for _, ref := range refs {
		item, known := items[ref]
		switch {
		case in.Current[ref].Withheld():
			f.held = append(f.held, ref)
			continue
		case known && (owned || item.Absent()):
			f.compareItem(in, ref, item)
			continue
		case known:
			f.foreign = in.Known.Record.Key
		}
		f.adoptCurrent(ref, in.Current[ref])
	}
	return f
}

// compareItem puts one recorded Ref where it belongs: unchanged, a Change that triggers, one to adopt, one that changes
// nothing.
func (f *findings) compareItem(in Input, ref reference.Ref, item record.Item) {
	state := in.Current[ref]
	change, changed, decided := Differs(in.Known.Record.Key, item, state)
	if !decided {
		f.reads, f.undecided = append(f.reads, ref), true
		return
	}
	if !changed {
		return
	}
	trigger := in.Intent.Tracked[ref]
	if change == Deleted && in.Required[ref] && !trigger.OnMissing {
		f.missing = append(f.missing, Change{Ref: ref, Type: Deleted})
	}
	switch {
	case startedWith(ref, change, state, in.Required[ref] || !trigger.OnCreate):
		f.adoptCurrent(ref, state)
	case change == Deleted && !trigger.OnDelete:
		// Re-created with other content, it is a modification.
	default:
		f.changes = append(f.changes, Change{Ref: ref, Type: change})
	}
}

// startedWith reports whether a state is the running one without a restart. Pods that need a created object wait for it and
// start with it; where it is not needed, the next change shall count. Of a SecretProviderClass, pods start with what they mount, and not
// with what the driver has rotated since.
func startedWith(ref reference.Ref, change ChangeType, state digest.State, adoptCreated bool) bool {
	if ref.Kind == reference.SecretProviderClass && !state.Mounted {
		return false
	}
	return change == Created && adoptCreated || change == Modified && state.Mounted
}

// adoptCurrent takes a Ref into the Record, for which its content must be known.
func (f *findings) adoptCurrent(ref reference.Ref, state digest.State) {
	f.adopt = append(f.adopt, ref)
	if !complete(state) {
		f.reads = append(f.reads, ref)
	}
}

// Differs compares one recorded item with the current state, whether or not the difference triggers. Equal resourceVersions mean equal
// content; different ones mean nothing, and leave it undecided until the content is read.
func Differs(id digest.KeyID, item record.Item, current digest.State) (change ChangeType, changed, decided bool) {
	switch {
	case !observed(current):
		return "", false, false
	case item.Absent() && current.Absent:
		return "", false, true
	case item.Absent():
		return Created, true, true
	case current.Absent:
		return Deleted, true, true
	case item.Hint != "" && item.Hint == current.ResourceVersion:
		return "", false, true
	}
	entry, read := current.Entry(id)
	return Modified, read && entry.Short() != item.Entry, read
}

// compareHash compares as a whole, where the Record is gone. Which object differs cannot be said, nor whether it was
// created: so there is no leniency for required objects here.
func compareHash(in Input) findings {
	refs, held := in.splitWithheld()
	f := findings{adopt: refs, held: held}
	for _, ref := range refs {
		if !complete(in.Current[ref]) {
			f.reads = append(f.reads, ref)
		}
	}
	mayCoverHeld := len(held) > 0 && !in.Known.hasLast()
	key, ours := digest.KeyOf(in.Known.Hash)
	switch _, owned := in.Ring.Key(key); {
	case ours && owned:
		return f.compareLive(in, key, refs, mayCoverHeld)
	case mayCoverHeld:
		return findings{held: held}
	}
	// Another program's hash, one under a lost key, or SAP's digest, which shows equality only.
	f.stamped = len(f.reads) == 0 && in.Known.Hash == in.Revision()
	if ours && !f.stamped {
		f.foreign = key
	}
	return f
}

// compareLive compares the hash with that of the current state, under its key. Where the last Record has nothing of a custom
// resource that is held, no stamp has covered it: then the hash is that of the others. Without such a Record, the hash may cover
// it: only where it is that of the others, something is known.
func (f findings) compareLive(in Input, key digest.KeyID, refs []reference.Ref, mayCoverHeld bool) findings {
	if len(f.reads) > 0 {
		f.undecided = !in.Intent.Dynamic && !mayCoverHeld
		return f
	}
	live, err := digest.Hash(key, digest.Subset(in.Current, refs))
	f.stamped = err == nil && live == in.Known.Hash
	switch {
	case err != nil:
	case f.stamped:
		f.current = len(f.held) == 0
	case mayCoverHeld:
		return findings{held: f.held}
	case !in.Intent.Dynamic:
		return findings{changes: []Change{{Ref: Any, Type: Modified}}}
	default:
		f.outdated = true
	}
	return f
}

// RestartsByHash reports whether a change restarts pods without a Record: the config-hash is under one of our keys, and is over objects that
// the workload itself names. A restart that leaves the template as it is needs the Record.
func (in Input) RestartsByHash(hash string) bool {
	key, ours := digest.KeyOf(hash)
	_, owned := in.Ring.Key(key)
	return ours && owned && !in.Intent.Dynamic && !in.Intent.Restart
}

// splitWithheld returns the tracked Refs without those that are withheld, and these.
func (in Input) splitWithheld() (refs, withheld []reference.Ref) {
	refs = in.refs()
	for _, ref := range refs {
		if in.Current[ref].Withheld() {
			withheld = append(withheld, ref)
		}
	}
	if len(withheld) == 0 {
		return refs, nil
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref reference.Ref) bool { return in.Current[ref].Withheld() }), withheld
}

// Revision returns SAP's digest of the current state, or nothing where there are no lists.
func (in Input) Revision() string {
	if len(in.Intent.ConfigMaps)+len(in.Intent.Secrets) == 0 {
		return ""
	}
	return digest.Revision(in.Namespace, in.Intent.ConfigMaps, in.Intent.Secrets, in.Current)
}

// observed reports whether anything is known of an object. Where nothing may be watched, the state is the zero one.
func observed(state digest.State) bool {
	return complete(state) || state.UID != ""
}

// complete reports whether all is known of an object, its content included.
func complete(state digest.State) bool {
	return state.Absent || state.Entries != nil
}
