package cluster

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The finalizers by which an object waits for the garbage collector (metav1.FinalizerOrphanDependents, FinalizerDeleteDependents).
const (
	orphanDependents = "orphan"
	deleteDependents = "foregroundDeletion"
)

// collect is one pass of the garbage collector over one object: it is removed if none of its owners exists or all of those that do are
// deleted in the foreground (garbagecollector.go, attemptToDeleteItem). A deleted namespace is emptied.
func (c *Cluster) collect(key world.Key) {
	if key.Resource == world.Namespaces {
		c.collectNamespace(key)
		return
	}
	object, ok := c.store.Get(key)
	if !ok {
		return
	}
	if deleting(object) {
		c.finalize(key, object)
		return
	}
	switch owners := c.ownersOf(key, object); {
	case len(owners.dispensable) == 0:
	case owners.kept > 0:
		for _, uid := range owners.dispensable {
			if object, ok = c.store.Get(key); ok {
				c.dropOwner(key, object, uid)
			}
		}
	case owners.waiting > 0 && len(c.dependents(uidOf(object))) > 0:
		c.deleteInForeground(key, object)
	default:
		c.remove(key)
	}
}

// owners are those of one object: how many exist and are kept, how many wait for its end, and the uids of these and of those that are gone.
type owners struct {
	kept, waiting int
	dispensable   []string
}

func (c *Cluster) ownersOf(key world.Key, object world.Object) (all owners) {
	for _, r := range world.Objects(object, "metadata", "ownerReferences") {
		switch owner, known := c.ownerOf(key.Namespace, r); {
		case known && owner == nil:
			all.dispensable = append(all.dispensable, world.Text(r, "uid"))
		case known && waitsForDependents(owner):
			all.waiting++
			all.dispensable = append(all.dispensable, world.Text(r, "uid"))
		default:
			all.kept++
		}
	}
	return all
}

// ownerOf looks the owner up by kind and name and compares the uid; nil if there is none. A kind that the model does not know counts as
// existing.
func (c *Cluster) ownerOf(namespace string, reference world.Object) (owner world.Object, known bool) {
	for _, resource := range world.Resources() {
		if resource.Kind != world.Text(reference, "kind") || resource.APIVersion() != world.Text(reference, "apiVersion") {
			continue
		}
		key := world.Key{Resource: resource, Name: world.Text(reference, "name")}
		if resource.Namespaced {
			key.Namespace = namespace
		}
		if found, ok := c.store.Get(key); ok && uidOf(found) == world.Text(reference, "uid") {
			return found, true
		}
		return nil, true
	}
	return nil, false
}

func (c *Cluster) dependents(uid string) []world.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index.children[uid]
}

// finalize does what an object that is being deleted waits for: it gives its dependents up, or has them deleted and waits for that.
func (c *Cluster) finalize(key world.Key, object world.Object) {
	switch {
	case hasFinalizer(object, orphanDependents):
		for _, child := range c.dependents(uidOf(object)) {
			if dependent, ok := c.store.Get(child); ok {
				c.dropOwner(child, dependent, uidOf(object))
			}
		}
		if !c.failed {
			c.dropFinalizer(key, orphanDependents)
		}
	case hasFinalizer(object, deleteDependents) && !c.deleteDependents(uidOf(object)):
		c.dropFinalizer(key, deleteDependents)
	}
}

// deleteDependents has the dependents of an owner deleted that it waits for, and reports whether there are any.
func (c *Cluster) deleteDependents(uid string) bool {
	waits := false
	for _, child := range c.dependents(uid) {
		dependent, ok := c.store.Get(child)
		if !ok || !blocks(dependent, uid) {
			continue
		}
		waits = true
		if !deleting(dependent) {
			c.mu.Lock()
			c.queue.add(piece{collect, child})
			c.mu.Unlock()
		}
	}
	return waits
}

// blocks reports whether an object must be gone before its owner.
func blocks(object world.Object, owner string) bool {
	return slices.ContainsFunc(world.Objects(object, "metadata", "ownerReferences"), func(reference world.Object) bool {
		return world.Text(reference, "uid") == owner && truth(reference, "blockOwnerDeletion")
	})
}

func hasFinalizer(object world.Object, name string) bool {
	return slices.Contains(items(object, "metadata", "finalizers"), any(name))
}

// waitsForDependents reports whether an object is deleted in the foreground.
func waitsForDependents(object world.Object) bool {
	return deleting(object) && hasFinalizer(object, deleteDependents)
}

// waitsForCollector reports whether an object is being deleted and the garbage collector has to do something before it may go.
func waitsForCollector(object world.Object) bool {
	return deleting(object) && (hasFinalizer(object, orphanDependents) || hasFinalizer(object, deleteDependents))
}

// deleteInForeground marks an object as one that is deleted after its dependents.
func (c *Cluster) deleteInForeground(key world.Key, object world.Object) {
	finalizers := append(slices.Clone(items(object, "metadata", "finalizers")), any(deleteDependents))
	object = world.With(object, finalizers, "metadata", "finalizers")
	object = world.With(object, int64(0), "metadata", "deletionGracePeriodSeconds")
	c.put(key, world.With(object, now(), "metadata", "deletionTimestamp"))
}

// dropFinalizer removes a finalizer from an object that is being deleted, and the object with the last one.
func (c *Cluster) dropFinalizer(key world.Key, name string) {
	object, ok := c.store.Get(key)
	if !ok {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(items(object, "metadata", "finalizers")), func(f any) bool { return f == name })
	if len(rest) == 0 {
		c.remove(key)
		return
	}
	c.put(key, world.With(object, rest, "metadata", "finalizers"))
}

// collectNamespace removes everything in a deleted namespace, and then the namespace if it only waits for that. What a finalizer holds is
// marked as being deleted, and the namespace waits for it.
func (c *Cluster) collectNamespace(key world.Key) {
	if namespace, ok := c.store.Get(key); ok && !deleting(namespace) {
		return
	}
	held := false
	for _, resource := range slices.Concat(world.Resources(), world.GraphResources()) {
		if !resource.Namespaced {
			continue
		}
		for _, object := range slices.Clone(c.store.List(resource, key.Name)) {
			at := world.Key{Resource: resource, Namespace: key.Name, Name: nameOf(object)}
			if len(ofOthers(object)) == 0 {
				c.remove(at)
				continue
			}
			held = true
			if !deleting(object) {
				c.put(at, world.With(world.With(object, int64(0), "metadata", "deletionGracePeriodSeconds"), now(), "metadata", "deletionTimestamp"))
			}
		}
	}
	if _, ok := c.store.Get(key); ok && !held {
		c.remove(key)
	}
}

// ofOthers returns the finalizers that are not those of the garbage collector.
func ofOthers(object world.Object) []any {
	return slices.DeleteFunc(slices.Clone(items(object, "metadata", "finalizers")), func(name any) bool {
		return name == orphanDependents || name == deleteDependents
	})
}
