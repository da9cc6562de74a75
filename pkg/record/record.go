// Package record reads and writes what pod-reloader remembers on a workload: the Record on the pod template, the
// Baseline and the last reload on the workload itself. Their texts are the only durable state there is.
//
// It is one of the pure packages, above digest. The texts are read by other versions of this program: a change of
// form needs a new version, and version N reads N−1.
package record

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// MaxSize is the most bytes that the text of a Record or a Baseline may have; a longer one is folded.
const MaxSize = 16 << 10

// Item is what is recorded of one config object.
type Item struct {
	// Key is the key under which the Entry was made.
	Key digest.KeyID
	// Entry has the first 16 hex digits of the Entry; it is empty when the object was recorded as absent.
	Entry string
	// Hint is the resourceVersion at that time, or empty. An equal one saves a read; a different one says nothing. On
	// an absent object it is a mere difference: a Record is rewritten with one to restart pods that must restart although
	// the recorded content is the same.
	Hint string
}

// Absent tells whether the object was recorded as not there.
func (i Item) Absent() bool {
	return i.Entry == ""
}

// Fold stands for a whole Record that would have been too long: whether something changed is still seen, what changed
// is not.
type Fold struct {
	// Key is the key under which the Entries were made.
	Key digest.KeyID
	// Entry has 16 hex digits over all Entries (digest.Fold).
	Entry string
	// Set has 8 hex digits over the Refs (digest.SetDigest): under another set, the Entry cannot be compared.
	Set string
}

// Record says which content the pods of a template were started with. Either Items or Fold is set; the zero value is
// the Record of no Refs. All Items are under one key.
type Record struct {
	Items map[reference.Ref]Item
	Fold  *Fold
}

// New makes the Record of live states under one key. When its text would have more than limit bytes it is folded, and
// folded is true. The error says that some state has no Entry under the key (its content must be read first), or that
// not even the folded text has room. A Baseline's text is longer than that of its Record by one byte and the length of
// Over (1 when empty).
func New(id digest.KeyID, states map[reference.Ref]digest.State, limit int) (r Record, folded bool, err error) {
	if err := complete(id, states); err != nil {
		return Record{}, false, err
	}
	r = plain(id, states)
	if r.size() <= limit {
		return r, false, nil
	}
	r, err = Folded(id, states)
	if err != nil {
		return Record{}, false, err
	}
	if size := r.size(); size > limit {
		return Record{}, false, roomError(size, limit)
	}
	return r, true, nil
}

// plain makes a Record that names every Ref.
func plain(id digest.KeyID, states map[reference.Ref]digest.State) Record {
	if len(states) == 0 {
		return Record{}
	}
	items := make(map[reference.Ref]Item, len(states))
	for ref, state := range states {
		item := Item{Key: id}
		if entry, ok := state.Entry(id); ok {
			item.Entry = entry.Short()
			if validHint(state.ResourceVersion) {
				item.Hint = state.ResourceVersion
			}
		}
		items[ref] = item
	}
	return Record{Items: items}
}

// Folded makes the Record of live states as one Entry, however short their list is. The error is New's.
func Folded(id digest.KeyID, states map[reference.Ref]digest.State) (Record, error) {
	entry, err := digest.Fold(id, states)
	if err != nil {
		return Record{}, err
	}
	return Record{Fold: &Fold{Key: id, Entry: entry, Set: digest.SetDigest(slices.Collect(maps.Keys(states)))}}, nil
}

// complete makes sure that every state can be recorded.
func complete(id digest.KeyID, states map[reference.Ref]digest.State) error {
	for _, state := range states {
		if _, ok := state.Entry(id); !ok && !state.Absent {
			_, err := digest.Hash(id, states) // names all that are missing, in order
			return err
		}
	}
	return nil
}
