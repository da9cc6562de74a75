// Package record reads and writes the state that pod-reloader keeps on a workload: the Record and the last reload, both
// annotations of the workload's own metadata. There is no other durable state.
//
// It is one of the pure packages, above digest. Other versions of this program read the texts: a change of form needs a
// new version, and version N reads N−1.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// MaxSize is the most bytes that the text of a Record may have.
const MaxSize = 24 << 10

// Item is what is recorded of one config object.
type Item struct {
	// Entry has the first 16 hex digits of the Entry; it is empty when the object was recorded as absent.
	Entry string
	// Adopted says that the content was taken as the running one without a rollout. Otherwise it is stamped: the pods of
	// the template were started with it.
	Adopted bool
	// Hint is the resourceVersion at that time, or empty. An equal one saves a read; a different one says nothing.
	Hint string
}

// Absent reports whether the object was recorded as not there.
func (i Item) Absent() bool { return i.Entry == "" }

// ItemOf returns the Item of a live state. It is false where the content was not read under the key.
func ItemOf(id digest.KeyID, state digest.State) (Item, bool) {
	if state.Absent {
		return Item{}, true
	}
	entry, ok := state.Entry(id)
	if !ok {
		return Item{}, false
	}
	item := Item{Entry: entry.Short()}
	if isToken(state.ResourceVersion) {
		item.Hint = state.ResourceVersion
	}
	return item, true
}

// Record says which content the running pods of a workload are known to have. The zero value is the empty Record of a
// template without a config-hash: nothing is known.
type Record struct {
	// Hash is the config-hash of the template that the Record belongs to, in the form that Binding returns. Beside
	// another template the Record is void.
	Hash string
	// Key is the key under which all Entries were made.
	Key digest.KeyID

	items map[reference.Ref]Item
	// compact has the items instead, where the names did not fit into the text.
	compact *compactItems
}

// New returns the Record of a template that bears the given config-hash ("" for none).
func New(hash string, key digest.KeyID, items map[reference.Ref]Item) Record {
	r := Record{Hash: Binding(hash)}
	if len(items) > 0 {
		r.Key, r.items = key, items
	}
	return r
}

// Binding brings the config-hash found on a template into the form that a Record keeps: as it is if it consists of 1 to
// 64 letters and digits, as all of ours do, and otherwise (another program's) its SHA-256 in hex.
func Binding(hash string) string {
	if hash == "" || isToken(hash) {
		return hash
	}
	sum := sha256.Sum256([]byte(hash))
	return hex.EncodeToString(sum[:])
}

// BelongsTo reports whether the Record is that of a template with the given config-hash ("" for none).
func (r Record) BelongsTo(hash string) bool { return r.Hash == Binding(hash) }

// Empty reports whether nothing is known.
func (r Record) Empty() bool { return len(r.items) == 0 && r.compact == nil }

// Stamped reports whether no item is adopted: the pods of a template with the Hash then started with the recorded content.
func (r Record) Stamped() bool {
	if r.compact != nil {
		return !anyAdopted(maps.Values(r.compact.byHash))
	}
	return !anyAdopted(maps.Values(r.items))
}

func anyAdopted(items iter.Seq[Item]) bool {
	for item := range items {
		if item.Adopted {
			return true
		}
	}
	return false
}

// Items returns what is recorded of the given Refs. A Ref that has no item is unknown. A compact Record has no names:
// of Refs that it cannot distinguish none has an item.
func (r Record) Items(refs []reference.Ref) map[reference.Ref]Item {
	if r.compact != nil {
		return r.compact.of(refs)
	}
	items := make(map[reference.Ref]Item, len(refs))
	for _, ref := range refs {
		if item, ok := r.items[ref]; ok {
			items[ref] = item
		}
	}
	return items
}

// ConfigHash returns the config-hash of the recorded Entries; false where a compact Record does not name the Refs. It is
// Hash where all items are stamped.
func (r Record) ConfigHash() (string, bool) {
	if r.compact != nil || r.Key == "" {
		return "", false
	}
	entries := make(map[reference.Ref]string, len(r.items))
	for ref, item := range r.items {
		entries[ref] = item.Entry
	}
	return digest.HashRecorded(r.Key, entries), true
}
