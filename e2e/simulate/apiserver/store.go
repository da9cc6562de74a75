package apiserver

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// name is the place of an object within its resource.
type name struct{ namespace, name string }

// record is the history of the object at one place, oldest first.
type record struct {
	name
	history []*item
}

// current returns the last item, which may be a deletion, or nil.
func (r *record) current() *item {
	if r == nil || len(r.history) == 0 {
		return nil
	}
	return r.history[len(r.history)-1]
}

// at returns the item as of a version; nil if there was none yet.
func (r *record) at(version int64) *item {
	if r == nil {
		return nil
	}
	i := sort.Search(len(r.history), func(i int) bool { return r.history[i].version > version })
	if i == 0 {
		return nil
	}
	return r.history[i-1]
}

// change is an entry of a table's log. Before is nil if there was no object, and then is a deletion if there is none.
type change struct {
	name
	before, then *item
	at           time.Time
}

// table has the objects of one resource with all their versions.
type table struct {
	kind    *kind
	records map[name]*record
	// order has the records sorted by namespace and name, those of deleted objects included.
	order   []*record
	log     []change
	watches []*Watch
}

// store keeps all objects. Its lock is never held while anything blocks.
type store struct {
	mu sync.RWMutex
	// version counts the changes, and never goes back. Clients see it without the shift, which grows when an earlier state is restored.
	version, shift int64
	compacted      int64
	// restored is the version by which an earlier state was restored last; 0 if that never was.
	restored int64
	// lost has the versions, as clients saw them, that objects had in states that are lost, in order; reuse means that they get them again.
	lost     map[place][]int64
	reuse    bool
	kinds    []*kind
	tables   map[*kind]*table
	onCommit func(world.Commit)
	uids     int64
}

func newStore(all []*kind, onCommit func(world.Commit)) *store {
	s := &store{version: 1, lost: map[place][]int64{}, kinds: all, tables: map[*kind]*table{}, onCommit: onCommit}
	for _, k := range all {
		s.tables[k] = &table{kind: k, records: map[name]*record{}}
	}
	return s
}

// get returns the live item at a place, or nil; a version of 0 means now.
func (s *store) get(k *kind, at name, version int64) *item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.tables[k].records[at]
	found := r.current()
	if version > 0 {
		found = r.at(version)
	}
	if !found.live() {
		return nil
	}
	return found
}

// list returns the live items that a selection matches, sorted, and the version of the state; 0 means now.
func (s *store) list(k *kind, sel selection, version int64) ([]*item, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.listLocked(k, sel, version)
}

func (s *store) listLocked(k *kind, sel selection, version int64) ([]*item, int64) {
	if version <= 0 || version > s.version {
		version = s.version
	}
	t := s.tables[k]
	if n, ok := sel.single(); ok {
		if i := t.records[n].at(version); i.live() && sel.matches(i) {
			return []*item{i}, version
		}
		return nil, version
	}
	var items []*item
	for _, r := range t.within(sel.namespace) {
		if i := r.at(version); i.live() && sel.matches(i) {
			items = append(items, i)
		}
	}
	return items, version
}

// within returns the records of a namespace, or all.
func (t *table) within(namespace string) []*record {
	if namespace == "" || !t.kind.Namespaced {
		return t.order
	}
	from := sort.Search(len(t.order), func(i int) bool { return t.order[i].namespace >= namespace })
	to := from
	for to < len(t.order) && t.order[to].namespace == namespace {
		to++
	}
	return t.order[from:to]
}

// add returns the record of a place, a new one if needed.
func (t *table) add(at name) *record {
	if r := t.records[at]; r != nil {
		return r
	}
	r := &record{name: at}
	t.records[at] = r
	i, _ := slices.BinarySearchFunc(t.order, r, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name.name, b.name.name))
	})
	t.order = slices.Insert(t.order, i, r)
	return r
}

// write is a change to be stored.
type write struct {
	kind *kind
	at   name
	// expect is the item that the write was computed from; nil if there must be no object.
	expect *item
	// next is nil for a deletion; the store gives it its version.
	next *item
	call *world.Call
	// sent makes Commit.Sent; nil means what is stored.
	sent func() world.Object
}

// commit stores a write unless the object has changed since, or an earlier state was restored since it came; the item is then nil.
func (s *store) commit(w write) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.tables[w.kind].records[w.at].current()
	if !before.live() {
		before = nil
	}
	if before != w.expect || w.call != nil && w.call.ArrivedVersion < s.restored {
		return nil
	}
	s.advance(w)
	then, text := w.next, formatVersion(s.version-s.shift)
	if then != nil {
		then.stamp(s.version, text)
	} else {
		then = before.deletion(s.version, text)
	}
	s.append(w.at, before, then)
	if twin := w.kind.twin; twin != nil {
		s.mirror(twin, w, then)
	}
	s.report(w, before, then)
	return then
}

// mirror stores the change in the other API group that serves the object, under the same version.
func (s *store) mirror(twin *kind, w write, then *item) {
	before := s.tables[twin].records[w.at].current()
	if !before.live() {
		before = nil
	}
	if w.next == nil {
		s.append(w.at, before, before.deletion(s.version, then.meta().ResourceVersion))
		return
	}
	s.append(w.at, before, newItem(twin, w.kind.toTwin(then.typed)).stamp(s.version, then.meta().ResourceVersion))
}

func (s *store) append(at name, before, then *item) {
	t := s.tables[then.kind]
	r := t.add(at)
	r.history = append(r.history, then)
	t.log = append(t.log, change{name: at, before: before, then: then, at: time.Now()})
	for _, w := range t.watches {
		w.wakeUp()
	}
}

func (s *store) report(w write, before, then *item) {
	if s.onCommit == nil {
		return
	}
	c := world.Commit{At: time.Now(), Version: s.version, Key: keyOf(w.kind, w.at), Call: w.call}
	if before != nil {
		c.Old = before.object()
	}
	if w.next != nil {
		c.New = then.object()
		c.Sent = c.New
		if w.sent != nil {
			c.Sent = w.sent()
		}
	}
	s.onCommit(c)
}

func keyOf(k *kind, at name) world.Key {
	return world.Key{Resource: k.Resource, Namespace: at.namespace, Name: at.name}
}

// now returns the current version.
func (s *store) now() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// newer reports whether an object of a kind has changed after a version.
func (s *store) newer(k *kind, version int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	log := s.tables[k].log
	return len(log) > 0 && log[len(log)-1].then.version > version
}

// oldest returns the version from which on watches can start.
func (s *store) oldest() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.compacted
}
