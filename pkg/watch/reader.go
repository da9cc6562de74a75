package watch

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Reader reads a Store; see there for its methods. The objects are shared with
// the store and the informer's cache: DeepCopy one before changing it.
type Reader interface {
	// Object returns the object of that namespace (empty for a cluster-scoped
	// kind) and name, or nil.
	Object(namespace, name string) *unstructured.Unstructured
	// Get returns the objects under the key, or under all keys that begin with
	// the parts, sorted by namespace and name.
	Get(parts ...string) []*unstructured.Unstructured
	// List returns all objects, sorted by namespace and name.
	List() []*unstructured.Unstructured
	// Len is the number of objects.
	Len() int
}

var _ Reader = (*Store)(nil)

// Reader gives access to the store that cannot change it.
func (s *Store) Reader() Reader {
	return reader{s}
}

// reader hides the methods of the Store that change it, from type assertions
// too.
type reader struct{ store *Store }

func (r reader) Object(namespace, name string) *unstructured.Unstructured {
	return r.store.Object(namespace, name)
}

func (r reader) Get(parts ...string) []*unstructured.Unstructured { return r.store.Get(parts...) }
func (r reader) List() []*unstructured.Unstructured               { return r.store.List() }
func (r reader) Len() int                                         { return r.store.Len() }
