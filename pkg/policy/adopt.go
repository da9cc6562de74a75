package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Adopt returns the Record of a template with the given config-hash that takes the current state of the Refs to adopt as
// the running one, and keeps what else is known while the pods stay. A Change that is due thus stays due, and one of a Ref that is
// hidden for a time is found when it is tracked again. Where the pods are replaced, take Only what is tracked of it.
func (a Assessment) Adopt(in Input, hash string) (record.Record, error) {
	in.Current, in.Ring = in.Known.Keep(in.Current, in.Ring)
	return a.record(in, hash)
}

// record is Adopt with the states that are to be recorded.
func (a Assessment) record(in Input, hash string) (record.Record, error) {
	newest, ok := in.Ring.Newest()
	if !ok {
		return record.Record{}, digest.ErrNoKey
	}
	items := in.Known.Record.Items(in.refs())
	maps.Copy(items, in.hidden())
	for _, ref := range a.Verdict.Adopt {
		delete(items, ref)
	}
	key := newest.ID
	_, inRing := in.Ring.Key(in.Known.Record.Key)
	for ref, item := range items {
		switch {
		case item.Absent():
		case inRing:
			key = in.Known.Record.Key // a Record has one key
		default:
			delete(items, ref) // it cannot be compared any more; what is held now is adopted when the hold ends
		}
	}
	for _, ref := range a.Verdict.Adopt {
		if in.Current[ref].Withheld() {
			continue
		}
		item, read := record.ItemOf(key, in.Current[ref])
		if !read {
			return record.Record{}, unreadError(ref)
		}
		item.Adopted = !a.stamped
		items[ref] = item
	}
	return record.New(hash, key, items), nil
}

// hidden returns what is recorded of Refs that are not tracked now: an annotation ignore, an exclude list or a flag may hide them for a
// time. Not known are those of a compact Record, which has no names. Custom resources are recorded while they are tracked only, since a
// recorded one is tracked until the rules are read that find them.
func (in Input) hidden() map[reference.Ref]record.Item {
	items := in.Known.Record.Items(in.Known.Record.Refs())
	maps.DeleteFunc(items, func(ref reference.Ref, item record.Item) bool {
		_, tracked := in.Intent.Tracked[ref]
		return tracked || ref.Kind.Custom() || item.Absent() && in.forgetsAbsence(ref.Kind)
	})
	return items
}

// forgetsAbsence reports whether expressions select objects of a kind whose creation does not trigger. Recorded absence then decides
// nothing, and names that are used once must not fill the Record.
func (in Input) forgetsAbsence(kind reference.Kind) bool {
	return slices.ContainsFunc(in.Intent.Selections, func(s annotation.Selection) bool {
		return s.Kind == kind && len(s.Patterns) > 0 && !s.Trigger.OnCreate
	})
}

// NewRecord returns the Record of pods that start with the current state of all tracked Refs, under the newest key. What is known
// counts only where Carry says so. adopted says that no stamp brings it to them.
func NewRecord(in Input, hash string, adopted bool) (record.Record, error) {
	a := Assessment{Verdict: Verdict{Adopt: in.refs()}, stamped: !adopted}
	in.Current = in.Known.Carry(in.Current)
	in.Known = Known{}
	return a.record(in, hash)
}

// RecordNotified returns the Record in which the current state of all tracked Refs counts as the running one, although no pod is replaced: Changes
// are reported instead of reloading. What is hidden stays known.
func RecordNotified(in Input, hash string) (record.Record, error) {
	return Assessment{Verdict: Verdict{Adopt: in.refs()}}.Adopt(in, hash)
}

func unreadError(ref reference.Ref) error {
	return fmt.Errorf("the content of %s has not been read", ref)
}
