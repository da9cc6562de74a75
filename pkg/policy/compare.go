package policy

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
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
	adopt   []reference.Ref
	foreign []digest.KeyID
}

func compare(in Input) findings {
	if in.Known.Fold != nil {
		return compareFolded(in)
	}
	var f findings
	for _, ref := range in.Intent.Refs() {
		item, known := in.Known.Items[ref]
		switch {
		case !known:
			f.adopt = append(f.adopt, ref)
		case !item.Absent() && !owned(in.Ring, item.Key):
			f.adopt = append(f.adopt, ref)
			f.foreign = append(f.foreign, item.Key)
		default:
			f.sort(in, ref, item)
		}
	}
	slices.Sort(f.foreign)
	f.foreign = slices.Compact(f.foreign)
	return f
}

// sort puts one known Ref where it belongs: unchanged, a Change that triggers, one to adopt, one that changes nothing.
func (f *findings) sort(in Input, ref reference.Ref, item record.Item) {
	change, changed := differs(item, in.Current[ref])
	if !changed {
		return
	}
	trigger := in.Intent.Tracked[ref]
	if change == Deleted && in.Required[ref] {
		f.missing = append(f.missing, Change{Ref: ref, Type: Deleted})
	}
	switch {
	case change == Created && (in.Required[ref] || !trigger.OnCreate):
		// Pods that need the object wait for it and start with it; otherwise the next change shall count.
		f.adopt = append(f.adopt, ref)
	case change == Deleted && !trigger.OnDelete:
		// Re-created with other content, it is a modification.
	default:
		f.changes = append(f.changes, Change{Ref: ref, Type: change})
	}
}

// differs compares one recorded item with the current state. Equal resourceVersions mean equal content; different ones
// mean nothing.
func differs(item record.Item, current digest.State) (ChangeType, bool) {
	switch {
	case !observed(current):
		return "", false
	case item.Absent() && current.Absent:
		return "", false
	case item.Absent():
		return Created, true
	case current.Absent:
		return Deleted, true
	case item.Hint != "" && item.Hint == current.ResourceVersion:
		return "", false
	}
	entry, read := current.Entry(item.Key)
	if !read || entry.Short() == item.Entry {
		return "", false
	}
	return Modified, true
}

// compareFolded compares as a whole. A changed set of Refs says nothing about contents, so it is adopted.
func compareFolded(in Input) findings {
	fold, refs := in.Known.Fold, in.Intent.Refs()
	if !owned(in.Ring, fold.Key) {
		return findings{adopt: refs, foreign: []digest.KeyID{fold.Key}}
	}
	if fold.Set != digest.SetDigest(refs) {
		return findings{adopt: refs}
	}
	entry, err := digest.Fold(fold.Key, digest.Subset(in.Current, refs))
	if err != nil || entry == fold.Entry {
		return findings{}
	}
	return findings{changes: []Change{{Ref: Folded, Type: Modified}}, missing: requiredAbsent(in)}
}

// requiredAbsent names what a folded Record cannot: the required objects that are not there.
func requiredAbsent(in Input) []Change {
	var missing []Change
	for _, ref := range in.Intent.Refs() {
		if in.Required[ref] && in.Current[ref].Absent {
			missing = append(missing, Change{Ref: ref, Type: Deleted})
		}
	}
	return missing
}

// observed tells whether anything is known of an object. Where nothing may be watched, the state is the zero one.
func observed(state digest.State) bool {
	return state.Absent || state.UID != "" || state.Entries != nil
}

// Reads returns the tracked Refs whose content must be read before Decide and Adopt can work: those of which nothing is
// known now; those that exist and whose recorded resourceVersion is another one; all, where something is to be adopted,
// since a Baseline without room for names is made of all contents. Ordered.
func Reads(in Input) []reference.Ref {
	all := in.Known.Fold != nil || len(compare(in).adopt) > 0
	var reads []reference.Ref
	for _, ref := range in.Intent.Refs() {
		if state := in.Current[ref]; !state.Absent && state.Entries == nil && (all || in.needsContent(ref, state)) {
			reads = append(reads, ref)
		}
	}
	return reads
}

// MayReload tells whether a reload is due or held, or may be once the contents that Reads asks for are known. Otherwise
// there is nothing that could be postponed: what is left can only be adopted.
func MayReload(in Input) bool {
	if Decide(in).Action != Nothing {
		return true
	}
	reads := Reads(in)
	if in.Known.Fold != nil {
		return len(reads) > 0 && len(compare(in).adopt) == 0
	}
	return slices.ContainsFunc(reads, func(ref reference.Ref) bool {
		item, known := in.Known.Items[ref]
		kept := item.Absent() || owned(in.Ring, item.Key)
		return known && kept && in.needsContent(ref, in.Current[ref])
	})
}

func (in Input) needsContent(ref reference.Ref, state digest.State) bool {
	item := in.Known.Items[ref]
	return !observed(state) || !item.Absent() && (item.Hint == "" || item.Hint != state.ResourceVersion)
}

// Unknown returns the tracked Refs that the known state does not name, ordered. A folded state names all or, if the set
// of Refs is another one, none.
func Unknown(intent annotation.Intent, known record.Known) []reference.Ref {
	refs := intent.Refs()
	if known.Fold != nil {
		if known.Fold.Set == digest.SetDigest(refs) {
			return nil
		}
		return refs
	}
	return slices.DeleteFunc(refs, func(ref reference.Ref) bool {
		_, ok := known.Items[ref]
		return ok
	})
}

func owned(ring digest.Ring, id digest.KeyID) bool {
	_, ok := ring.Key(id)
	return ok
}
