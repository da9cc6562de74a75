package index

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Index has which workloads track a config object, by its name or by a pattern. It is safe for concurrent use.
type Index struct {
	// patterns is nil where no dialect has any.
	patterns *pattern.Index[workload.Key]

	mu          sync.RWMutex
	byRef       map[Object]trackers
	byKey       map[workload.Key][]reference.Ref
	byNamespace map[string]map[workload.Key]struct{}
	// wide has the namespaces in which custom resources are tracked: such a resource may be in no namespace.
	wide map[reference.Ref]map[string]struct{}
}

// Object names a config object: a Ref with its namespace.
type Object struct {
	Namespace string
	Ref       reference.Ref
}

// New returns an empty index. patterns may be nil.
func New(patterns *pattern.Index[workload.Key]) *Index {
	return &Index{
		patterns: patterns, byRef: map[Object]trackers{}, byKey: map[workload.Key][]reference.Ref{}, byNamespace: map[string]map[workload.Key]struct{}{},
		wide: map[reference.Ref]map[string]struct{}{},
	}
}

// SetRefs replaces what a workload tracks, and returns what it did not track before. refs are sorted, as Intent.Refs returns
// them: a list can have tens of thousands of names, and the watches wait meanwhile.
func (x *Index) SetRefs(key workload.Key, refs []reference.Ref) (added []reference.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, ok := x.byKey[key]
	if ok && slices.Equal(known, refs) {
		return nil
	}
	for _, ref := range refs {
		if _, both := slices.BinarySearchFunc(known, ref, reference.Ref.Compare); !both {
			added = append(added, ref)
		}
	}
	x.drop(key)
	x.byKey[key] = refs
	add(x.byNamespace, key.Namespace, key)
	for _, ref := range refs {
		at := Object{key.Namespace, ref}
		x.byRef[at] = x.byRef[at].with(key)
		if ref.Kind.Custom() {
			add(x.wide, ref, key.Namespace)
		}
	}
	return added
}

// Delete forgets a workload.
func (x *Index) Delete(key workload.Key) {
	x.patterns.Delete(key, key.Namespace)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(key)
}

// Has reports whether a workload is in the index.
func (x *Index) Has(key workload.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.byKey[key]
	return ok
}

// Missing returns those of some workloads that are not in the index.
func (x *Index) Missing(keys []workload.Key) []workload.Key {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var missing []workload.Key
	for _, key := range keys {
		if _, ok := x.byKey[key]; !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

// DeleteKind forgets the workloads of a kind and returns them.
func (x *Index) DeleteKind(id string) []workload.Key {
	x.mu.RLock()
	var keys []workload.Key
	for key := range x.byKey {
		if key.Kind == id {
			keys = append(keys, key)
		}
	}
	x.mu.RUnlock()
	for _, key := range keys {
		x.Delete(key)
	}
	return keys
}

func (x *Index) drop(key workload.Key) {
	for _, ref := range x.byKey[key] {
		at := Object{key.Namespace, ref}
		if rest := x.byRef[at].without(key); len(rest.keys) > 0 {
			x.byRef[at] = rest
		} else {
			delete(x.byRef, at)
			remove(x.wide, ref, key.Namespace)
		}
	}
	remove(x.byNamespace, key.Namespace, key)
	delete(x.byKey, key)
}

// Trackers returns the workloads that track a config object; those of every namespace, if it is in none.
func (x *Index) Trackers(namespace string, ref reference.Ref) []workload.Key {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if namespace != "" {
		return slices.Clone(x.byRef[Object{namespace, ref}].keys)
	}
	var keys []workload.Key
	for _, namespace := range slices.Sorted(maps.Keys(x.wide[ref])) {
		keys = append(keys, x.byRef[Object{namespace, ref}].keys...)
	}
	return keys
}

// Tracked returns the config objects that are tracked and that pick selects, sorted. pick is called under the lock.
func (x *Index) Tracked(pick func(Object) bool) []Object {
	x.mu.RLock()
	var objects []Object
	for at := range x.byRef {
		if pick(at) {
			objects = append(objects, at)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), a.Ref.Compare(b.Ref))
	})
	return objects
}

// Namespaces returns those that have workloads, sorted.
func (x *Index) Namespaces() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.byNamespace))
}

// In returns the workloads of a namespace, sorted.
func (x *Index) In(namespace string) []workload.Key {
	x.mu.RLock()
	keys := slices.Collect(maps.Keys(x.byNamespace[namespace]))
	x.mu.RUnlock()
	slices.SortFunc(keys, workload.Key.Compare)
	return keys
}

// All returns the workloads, sorted: so two processes treat them in the same order.
func (x *Index) All() []workload.Key { return x.Select(func(workload.Key) bool { return true }) }

// Select returns the workloads that pick selects, sorted. pick may take long: it is called without the lock.
func (x *Index) Select(pick func(workload.Key) bool) []workload.Key {
	x.mu.RLock()
	keys := slices.Collect(maps.Keys(x.byKey))
	x.mu.RUnlock()
	keys = slices.DeleteFunc(keys, func(key workload.Key) bool { return !pick(key) })
	slices.SortFunc(keys, workload.Key.Compare)
	return keys
}

func add[K, V comparable](sets map[K]map[V]struct{}, at K, value V) {
	set, ok := sets[at]
	if !ok {
		set = map[V]struct{}{}
		sets[at] = set
	}
	set[value] = struct{}{}
}

func remove[K, V comparable](sets map[K]map[V]struct{}, at K, value V) {
	delete(sets[at], value)
	if len(sets[at]) == 0 {
		delete(sets, at)
	}
}

// Set replaces what a workload asks for, and returns the names that it did not ask for before. What it selects need not be
// resolved: it is indexed by all that may be tracked.
func (x *Index) Set(key workload.Key, intent annotation.Intent) (added []reference.Ref) {
	x.patterns.Set(key, key.Namespace, intent.Patterns())
	return x.SetRefs(key, intent.Candidates())
}

// WorkloadsFor returns the workloads that a config event may concern, each once. Where it takes long to find those whose patterns match, it
// returns the others, and later is called with those by another goroutine. Events of what was there before the watch began only teach
// the index its name: such objects are compared when the loop starts.
func (x *Index) WorkloadsFor(e configstate.Event, later func([]workload.Key)) []workload.Key {
	matching := x.patterns.Put
	if e.Type == configstate.Deleted {
		x.patterns.Put(e.Namespace, e.Ref, nil) // no watch may have shown it: a workload that has read it waits for its end all the same
		matching = x.patterns.Remove
	}
	if e.Initial {
		matching(e.Namespace, e.Ref, nil)
		return nil
	}
	keys := matching(e.Namespace, e.Ref, later)
	named := x.Trackers(e.Namespace, e.Ref)
	switch {
	case len(keys) == 0:
		return named
	case len(named) == 0:
		return keys
	}
	both := make(map[workload.Key]bool, len(keys))
	for _, key := range keys {
		both[key] = true
	}
	return append(slices.DeleteFunc(named, func(key workload.Key) bool { return both[key] }), keys...)
}
