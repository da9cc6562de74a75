package policy

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Adopt returns the Record of a template with the given config-hash that takes the current state of the Refs to adopt as
// the running one, and keeps what else is known of tracked Refs. A Change that is due thus stays due.
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

// Fresh returns the Record of pods that start with the current state of all tracked Refs, under the newest key. What is known
// counts only where Carry says so. adopted says that no stamp brings it to them.
func Fresh(in Input, hash string, adopted bool) (record.Record, error) {
	a := Assessment{Verdict: Verdict{Adopt: in.refs()}, stamped: !adopted}
	in.Current = in.Known.Carry(in.Current)
	in.Known = Known{}
	return a.record(in, hash)
}

func unreadError(ref reference.Ref) error {
	return fmt.Errorf("the content of %s has not been read", ref)
}
