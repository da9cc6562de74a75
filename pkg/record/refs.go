package record

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Has reports whether something is recorded of a Ref.
func (r Record) Has(ref reference.Ref) bool {
	_, ok := r.Items([]reference.Ref{ref})[ref]
	return ok
}

// HasContent reports whether an object is recorded with a content, not as absent.
func (r Record) HasContent(ref reference.Ref) bool {
	item, ok := r.Items([]reference.Ref{ref})[ref]
	return ok && !item.Absent()
}

// Refs returns the recorded Refs, in any order. A compact Record has no names and returns nil.
func (r Record) Refs() []reference.Ref { return slices.Collect(maps.Keys(r.items)) }

// Only returns the Record without the items of other Refs. A compact Record does not name those that it has: it keeps them all.
func (r Record) Only(refs []reference.Ref) Record {
	if r.compact != nil {
		return r
	}
	r.items = r.Items(refs)
	if len(r.items) == 0 {
		r.Key, r.items = "", nil
	}
	return r
}

// WithoutHints returns the Record without some of its hints. It is the same where none is left out.
func (r Record) WithoutHints(drop func(hint string) bool) Record {
	if r.compact != nil {
		r.compact = &compactItems{salt: r.compact.salt, byHash: withoutHints(r.compact.byHash, drop)}
	}
	r.items = withoutHints(r.items, drop)
	return r
}

func withoutHints[K comparable](items map[K]Item, drop func(hint string) bool) map[K]Item {
	var without map[K]Item
	for key, item := range items {
		if !drop(item.Hint) {
			continue
		}
		if without == nil {
			without = maps.Clone(items)
		}
		item.Hint = ""
		without[key] = item
	}
	if without == nil {
		return items
	}
	return without
}

// TextFor is Text in which the items of other Refs are left out first, where their names do not fit: they must not cost the others theirs.
// Where no Refs are given, all items count.
func (r Record) TextFor(refs []reference.Ref, limit int) (string, bool) {
	if r.compact == nil && len(refs) > 0 && len(r.named()) > min(limit, MaxSize) {
		r = r.Only(refs)
	}
	return r.Text(limit)
}

// SameContents reports whether both record the same contents of the same Refs for the same template. Their resourceVersions may differ, and
// one may be adopted that the other has stamped.
func (r Record) SameContents(other Record) bool { return r.bare().String() == other.bare().String() }

// bare returns the Record with nothing but contents in its items.
func (r Record) bare() Record {
	if r.compact != nil {
		r.compact = &compactItems{salt: r.compact.salt, byHash: contentsOf(r.compact.byHash)}
	}
	r.items = contentsOf(r.items)
	return r
}

func contentsOf[K comparable](items map[K]Item) map[K]Item {
	bare := make(map[K]Item, len(items))
	for key, item := range items {
		bare[key] = Item{Entry: item.Entry}
	}
	return bare
}
