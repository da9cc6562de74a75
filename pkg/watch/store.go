package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Store holds objects under composite keys. Keys need not be unique: several
// objects may share one, and an object may have several. An object is known by
// namespace and name, so that a moved key leaves its old place, and deleting one
// of several objects under a key leaves the others.
//
// All methods may be called by any goroutine, also from callbacks; none blocks
// for longer than another one runs. A Bulk fills a store of its own, and gives a
// Reader of it.
type Store struct {
	width int

	mu      sync.RWMutex
	objects map[identity]*entry
	root    *node
}

type identity struct{ namespace, name string }

func (i identity) compare(other identity) int {
	if order := strings.Compare(i.namespace, other.namespace); order != 0 {
		return order
	}
	return strings.Compare(i.name, other.name)
}

type entry struct {
	id     identity
	object *unstructured.Unstructured
	keys   []Key
}

// node is one level of the index; entries are only at the last level.
type node struct {
	children map[string]*node
	entries  []*entry
}

// NewStore makes an empty store whose keys have the given number of parts, at
// least one.
func NewStore(width int) (*Store, error) {
	if width < 1 {
		return nil, &ConfigError{Field: "width", Expression: fmt.Sprint(width), Reason: "a key has at least one part"}
	}
	return &Store{width: width, objects: map[identity]*entry{}, root: &node{}}, nil
}

// Put stores the object under the keys, in the place of one with the same
// namespace and name, which it returns (else nil). The number of parts of each
// key must be the store's width. Without any key only Object and List find it.
// The store copies the keys, and keeps the object itself.
func (s *Store) Put(object *unstructured.Unstructured, keys ...Key) (*unstructured.Unstructured, error) {
	for _, key := range keys {
		if len(key) != s.width {
			return nil, fmt.Errorf("store %s/%s: the key %q has %d parts, the index has %d",
				object.GetNamespace(), object.GetName(), key, len(key), s.width)
		}
	}
	id := identity{object.GetNamespace(), object.GetName()}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[id]
	if old != nil && slices.EqualFunc(old.keys, keys, slices.Equal) {
		previous := old.object
		old.object = object
		return previous, nil
	}
	added := &entry{id: id, object: object, keys: cloneKeys(keys)}
	s.objects[id] = added
	for _, key := range keys {
		s.root.insert(added, key)
	}
	if old == nil {
		return nil, nil
	}
	s.unindex(old)
	return old.object, nil
}

// cloneKeys copies the keys with their parts: the caller may use a Key again.
func cloneKeys(keys []Key) []Key {
	cloned := make([]Key, len(keys))
	for i, key := range keys {
		cloned[i] = slices.Clone(key)
	}
	return cloned
}

func (s *Store) unindex(e *entry) {
	for _, key := range e.keys {
		s.root.remove(e, key)
	}
}

// DeleteObject removes the object of that namespace (empty for cluster-scoped
// kinds) and name and returns it, or nil if there is none.
func (s *Store) DeleteObject(namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := identity{namespace, name}
	old := s.objects[id]
	if old == nil {
		return nil
	}
	delete(s.objects, id)
	s.unindex(old)
	return old.object
}

// Object returns the object of that namespace and name, or nil.
func (s *Store) Object(namespace, name string) *unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.objects[identity{namespace, name}]; found != nil {
		return found.object
	}
	return nil
}

// Len is the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Get returns the objects under the key, or, given fewer parts than the index
// has, under all keys that begin with them, sorted by namespace and name
// with every call. More parts than the index has find nothing.
func (s *Store) Get(parts ...string) []*unstructured.Unstructured {
	if len(parts) == 0 {
		return s.List()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.root
	for _, part := range parts {
		if at = at.children[part]; at == nil {
			return nil
		}
	}
	return sorted(at.collect(nil))
}

// List returns all objects, sorted by namespace and name.
func (s *Store) List() []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sorted(slices.Collect(maps.Values(s.objects)))
}

// sorted orders the entries; one may be there under several keys.
func sorted(entries []*entry) []*unstructured.Unstructured {
	slices.SortFunc(entries, func(a, b *entry) int { return a.id.compare(b.id) })
	entries = slices.Compact(entries)
	found := make([]*unstructured.Unstructured, len(entries))
	for i, e := range entries {
		found[i] = e.object
	}
	return found
}

func (n *node) insert(e *entry, key Key) {
	if len(key) == 0 {
		n.entries = append(n.entries, e)
		return
	}
	child := n.children[key[0]]
	if child == nil {
		child = &node{}
		if n.children == nil {
			n.children = map[string]*node{}
		}
		n.children[key[0]] = child
	}
	child.insert(e, key[1:])
}

// remove takes the entry out and drops what has become empty.
func (n *node) remove(e *entry, key Key) {
	if len(key) == 0 {
		n.entries = slices.DeleteFunc(n.entries, func(other *entry) bool { return other == e })
		return
	}
	child := n.children[key[0]]
	if child == nil {
		return // the same key was given twice
	}
	child.remove(e, key[1:])
	if len(child.entries) == 0 && len(child.children) == 0 {
		delete(n.children, key[0])
	}
}

func (n *node) collect(into []*entry) []*entry {
	into = append(into, n.entries...)
	for _, child := range n.children {
		into = child.collect(into)
	}
	return into
}
