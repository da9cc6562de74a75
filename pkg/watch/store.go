package watch

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Store holds objects under a composite key. Keys need not be unique: several
// objects may share one. An object is known by namespace and name, so that a
// moved key leaves its old place, and deleting one of several objects under a
// key leaves the others.
//
// All methods may be called by any goroutine, also from callbacks; none blocks
// for longer than another one runs. The objects belong to the store: read
// them, and DeepCopy what you want to change. Put and DeleteObject are for
// those who fill a store of their own; the store of a Bulk is filled by it.
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
	keys   []string
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
// namespace and name, which it returns (else nil). The number of keys must be
// the store's width.
func (s *Store) Put(object *unstructured.Unstructured, keys ...string) (*unstructured.Unstructured, error) {
	if len(keys) != s.width {
		return nil, fmt.Errorf("store %s/%s: %d keys given, the index has %d", object.GetNamespace(), object.GetName(), len(keys), s.width)
	}
	id := identity{object.GetNamespace(), object.GetName()}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[id]
	if old != nil && slices.Equal(old.keys, keys) {
		previous := old.object
		old.object = object
		return previous, nil
	}
	added := &entry{id: id, object: object, keys: slices.Clone(keys)}
	s.objects[id] = added
	s.root.insert(added, keys)
	if old == nil {
		return nil, nil
	}
	s.root.remove(old, old.keys)
	return old.object, nil
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
	s.root.remove(old, old.keys)
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
// has, under all keys that begin with them, sorted by namespace and name, anew
// with every call. More parts than the index has find nothing.
func (s *Store) Get(keys ...string) []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.root
	for _, key := range keys {
		if at = at.children[key]; at == nil {
			return nil
		}
	}
	entries := at.collect(nil)
	slices.SortFunc(entries, func(a, b *entry) int { return a.id.compare(b.id) })
	found := make([]*unstructured.Unstructured, len(entries))
	for i, e := range entries {
		found[i] = e.object
	}
	return found
}

// List returns all objects, sorted by namespace and name.
func (s *Store) List() []*unstructured.Unstructured {
	return s.Get()
}

func (n *node) insert(e *entry, keys []string) {
	if len(keys) == 0 {
		n.entries = append(n.entries, e)
		return
	}
	child := n.children[keys[0]]
	if child == nil {
		child = &node{}
		if n.children == nil {
			n.children = map[string]*node{}
		}
		n.children[keys[0]] = child
	}
	child.insert(e, keys[1:])
}

// remove takes the entry out and drops what has become empty.
func (n *node) remove(e *entry, keys []string) {
	if len(keys) == 0 {
		n.entries = slices.DeleteFunc(n.entries, func(other *entry) bool { return other == e })
		return
	}
	child := n.children[keys[0]]
	child.remove(e, keys[1:])
	if len(child.entries) == 0 && len(child.children) == 0 {
		delete(n.children, keys[0])
	}
}

func (n *node) collect(into []*entry) []*entry {
	into = append(into, n.entries...)
	for _, child := range n.children {
		into = child.collect(into)
	}
	return into
}
