package cluster

import (
	"cmp"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// index finds the objects of an owner. What it says is verified against the store before it is used.
type index struct {
	// children has the keys of the objects that name an owner, by the owner's uid, sorted.
	children map[string][]world.Key
	// adrift has the keys of the pods, ReplicaSets and ControllerRevisions without a controller.
	adrift map[shelf][]world.Key
	// filed says under which owners an object is.
	filed map[world.Key]filing
	// alive has the key of every object, by uid.
	alive map[string]world.Key
}

// shelf names the objects of one resource in one namespace.
type shelf struct{ plural, namespace string }

type filing struct {
	uid        string
	controller string
	owners     []string
	adrift     bool
	// waits means that it is deleted in the foreground: it ends after its dependents.
	waits bool
	// generation is that of the spec.
	generation int
}

func newIndex() index {
	return index{
		children: map[string][]world.Key{},
		adrift:   map[shelf][]world.Key{},
		filed:    map[world.Key]filing{},
		alive:    map[string]world.Key{},
	}
}

// file puts an object where its owners find it. It returns the controller that it had before.
func (x *index) file(key world.Key, object world.Object) (before filing) {
	before = x.filed[key]
	after := filing{uid: uidOf(object), controller: controllerOf(object), generation: number(object, 0, "metadata", "generation")}
	for _, owner := range world.Objects(object, "metadata", "ownerReferences") {
		after.owners = append(after.owners, world.Text(owner, "uid"))
	}
	after.waits = waitsForDependents(object)
	switch key.Resource {
	case world.Pods, world.ReplicaSets, world.ControllerRevisions:
		after.adrift = after.controller == ""
	}
	if before.uid == after.uid && before.adrift == after.adrift && before.controller == after.controller &&
		slices.Equal(before.owners, after.owners) {
		x.filed[key] = after
		return before
	}
	x.unfile(key)
	x.filed[key] = after
	x.alive[after.uid] = key
	for _, owner := range after.owners {
		x.children[owner] = insert(x.children[owner], key)
	}
	if after.adrift {
		s := shelf{key.Resource.Plural, key.Namespace}
		x.adrift[s] = insert(x.adrift[s], key)
	}
	return before
}

// unfile forgets an object, and returns under which owners it was.
func (x *index) unfile(key world.Key) filing {
	before, ok := x.filed[key]
	if !ok {
		return before
	}
	delete(x.filed, key)
	if x.alive[before.uid] == key {
		delete(x.alive, before.uid)
	}
	for _, owner := range before.owners {
		x.children[owner] = withoutKey(x.children[owner], key)
		if len(x.children[owner]) == 0 {
			delete(x.children, owner)
		}
	}
	if before.adrift {
		s := shelf{key.Resource.Plural, key.Namespace}
		x.adrift[s] = withoutKey(x.adrift[s], key)
	}
	return before
}

func compareKeys(a, b world.Key) int {
	return cmp.Or(cmp.Compare(a.Resource.Plural, b.Resource.Plural), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// insert returns a new slice: those returned before may still be read.
func insert(keys []world.Key, key world.Key) []world.Key {
	i, found := slices.BinarySearchFunc(keys, key, compareKeys)
	if found {
		return keys
	}
	inserted := make([]world.Key, 0, len(keys)+1)
	inserted = append(inserted, keys[:i]...)
	inserted = append(inserted, key)
	return append(inserted, keys[i:]...)
}

func withoutKey(keys []world.Key, key world.Key) []world.Key {
	i, found := slices.BinarySearchFunc(keys, key, compareKeys)
	if !found {
		return keys
	}
	return slices.Concat(keys[:i], keys[i+1:])
}
