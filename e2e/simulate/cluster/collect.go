package cluster

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// collect is one pass of the garbage collector over one object: it is removed if none of its owners exists. A deleted
// namespace is emptied.
func (c *Cluster) collect(key world.Key) {
	if key.Resource == world.Namespaces {
		c.collectNamespace(key)
		return
	}
	c.releaseOrphaned()
	object, ok := c.store.Get(key)
	if !ok {
		return
	}
	var kept, lost int
	var dangling []string
	for _, reference := range items(object, "metadata", "ownerReferences") {
		r, _ := reference.(map[string]any)
		if c.ownerExists(key.Namespace, r) {
			kept++
			continue
		}
		lost++
		dangling = append(dangling, world.Text(r, "uid"))
	}
	switch {
	case lost == 0:
	case kept == 0:
		c.remove(key)
	default:
		for _, uid := range dangling {
			if object, ok = c.store.Get(key); ok {
				c.dropOwner(key, object, uid)
			}
		}
	}
}

// ownerExists looks the owner up by kind and name and compares the uid. A kind that the model does not know counts as existing.
func (c *Cluster) ownerExists(namespace string, reference world.Object) bool {
	for _, resource := range world.Resources() {
		if resource.Kind != world.Text(reference, "kind") || resource.APIVersion() != world.Text(reference, "apiVersion") {
			continue
		}
		key := world.Key{Resource: resource, Name: world.Text(reference, "name")}
		if resource.Namespaced {
			key.Namespace = namespace
		}
		found, ok := c.store.Get(key)
		return ok && uidOf(found) == world.Text(reference, "uid")
	}
	return true
}

// releaseOrphaned removes the references to owners that were deleted with the policy Orphan. Real clusters do so before the
// owner goes; here it is done before anything else looks at its dependents.
func (c *Cluster) releaseOrphaned() {
	c.mu.Lock()
	if len(c.index.orphaned) == 0 {
		c.mu.Unlock()
		return
	}
	owners := slices.Sorted(maps.Keys(c.index.orphaned))
	children := make([][]world.Key, len(owners))
	for i, uid := range owners {
		children[i] = c.index.children[uid]
	}
	c.mu.Unlock()
	for i, uid := range owners {
		for _, key := range children[i] {
			if object, ok := c.store.Get(key); ok {
				c.dropOwner(key, object, uid)
			}
		}
	}
}

// collectNamespace removes everything in a deleted namespace, and then the namespace if it only waits for that.
func (c *Cluster) collectNamespace(key world.Key) {
	if namespace, ok := c.store.Get(key); ok && !deleting(namespace) {
		return
	}
	for _, resource := range world.Resources() {
		if !resource.Namespaced {
			continue
		}
		for _, object := range slices.Clone(c.store.List(resource, key.Name)) {
			c.remove(world.Key{Resource: resource, Namespace: key.Name, Name: nameOf(object)})
		}
	}
	if _, ok := c.store.Get(key); ok {
		c.remove(key)
	}
}
