package pattern

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Index knows which workloads, by their keys, have a pattern that matches a config object. It matches each pattern once
// against each name, however many workloads share it and however often the object changes: an event of a known object
// costs one look at a bit per pattern of its namespace. Where a namespace has no patterns for a kind, nothing is kept.
//
// It is safe for concurrent use. A nil Index takes in nothing and has nothing.
type Index[K comparable] struct {
	names func(namespace string, kind reference.Kind) []string

	mu     sync.RWMutex
	tables map[scopeKey]*table[K]
	// byKey has the uses of a workload, sorted.
	byKey map[K][]use
}

// scopeKey is one kind of config objects in one namespace.
type scopeKey struct {
	namespace string
	kind      reference.Kind
}

// use is a pattern that a workload has.
type use struct {
	scopeKey
	text string
}

func (u use) compare(other use) int {
	return cmp.Or(strings.Compare(string(u.kind), string(other.kind)), strings.Compare(u.text, other.text), strings.Compare(u.namespace, other.namespace))
}

// in reports whether it is one of some sorted uses.
func (u use) in(uses []use) bool {
	_, found := slices.BinarySearchFunc(uses, u, use.compare)
	return found
}

// Use is a pattern for names of one kind.
type Use struct {
	Kind    reference.Kind
	Pattern *Pattern
}

func (u Use) use(namespace string) use { return use{scopeKey{namespace, u.Kind}, u.Pattern.text} }

// NewIndex returns an empty index. names returns the names of the config objects that exist, when the first pattern of a
// namespace arrives; from then on Put and Remove must be called for every change that names does not show.
func NewIndex[K comparable](names func(namespace string, kind reference.Kind) []string) *Index[K] {
	return &Index[K]{names: names, tables: map[scopeKey]*table[K]{}, byKey: map[K][]use{}}
}

// Set replaces the patterns that a workload has for the config objects of its namespace.
func (x *Index[K]) Set(key K, namespace string, patterns []Use) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.byKey[key]
	if len(before)+len(patterns) == 0 {
		return
	}
	patterns = slices.Clone(patterns)
	slices.SortFunc(patterns, func(a, b Use) int { return a.use(namespace).compare(b.use(namespace)) })
	after := make([]use, 0, len(patterns))
	for _, p := range patterns {
		u := p.use(namespace)
		if len(after) > 0 && after[len(after)-1] == u {
			continue
		}
		if !u.in(before) {
			x.table(u.scopeKey).add(key, p.Pattern)
		}
		after = append(after, u)
	}
	for _, u := range before {
		if !u.in(after) {
			x.drop(key, u)
		}
	}
	x.byKey[key] = after
	if len(after) == 0 {
		delete(x.byKey, key)
	}
}

// Delete forgets a workload.
func (x *Index[K]) Delete(key K) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, u := range x.byKey[key] {
		x.drop(key, u)
	}
	delete(x.byKey, key)
}

// Put takes in that a config object exists, and returns the workloads with a pattern that matches its name, each once.
func (x *Index[K]) Put(namespace string, ref reference.Ref) []K {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tables[scopeKey{namespace, ref.Kind}]
	if t == nil {
		return nil
	}
	return t.users(t.put(ref.Name))
}

// Remove takes in that a config object is gone, and returns the workloads with a pattern that matches its name, each once.
func (x *Index[K]) Remove(namespace string, ref reference.Ref) []K {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tables[scopeKey{namespace, ref.Kind}]
	if t == nil {
		return nil
	}
	slot, ok := t.slots[ref.Name]
	if !ok {
		return nil
	}
	keys := t.users(slot)
	t.remove(slot)
	return keys
}

// Matching returns the names of the config objects that a pattern matches, sorted. It is false for a pattern that no
// workload of the namespace has.
func (x *Index[K]) Matching(namespace string, kind reference.Kind, p *Pattern) ([]string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.tables[scopeKey{namespace, kind}]
	if t == nil {
		return nil, false
	}
	r := t.byText[p.text]
	if r == nil {
		return nil, false
	}
	return t.matched(r), true
}

// table returns the table of a scopeKey, and fills a new one with the names that exist.
func (x *Index[K]) table(at scopeKey) *table[K] {
	t := x.tables[at]
	if t == nil {
		t = &table[K]{byText: map[string]*row[K]{}}
		t.fill(x.names(at.namespace, at.kind))
		x.tables[at] = t
	}
	return t
}

func (x *Index[K]) drop(key K, u use) {
	t := x.tables[u.scopeKey]
	t.drop(key, u.text)
	if len(t.rows) == 0 {
		delete(x.tables, u.scopeKey)
	}
}
