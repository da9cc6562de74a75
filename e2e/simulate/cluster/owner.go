package cluster

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// owner is an object that controls others.
type owner struct {
	key      world.Key
	object   world.Object
	selector selector
}

func ownerOf(key world.Key, object world.Object) owner {
	return owner{key, object, readSelector(world.Section(object, "spec", "selector"))}
}

// reference is the owner reference of a controller, as metav1.NewControllerRef makes it.
func (o owner) reference() world.Object {
	return world.Object{
		"apiVersion": o.key.Resource.APIVersion(), "kind": o.key.Resource.Kind, "name": o.key.Name, "uid": uidOf(o.object),
		"controller": true, "blockOwnerDeletion": true,
	}
}

// controllerOf returns the uid of the controller of an object.
func controllerOf(object world.Object) string {
	return world.Text(world.Controller(object), "uid")
}

// claim returns the objects of a resource that the owner controls, sorted by name. As the real controllers do, it releases
// those that the selector no longer matches, and adopts those that it matches and that have no controller.
func (c *Cluster) claim(o owner, resource world.Resource) []world.Object {
	var claimed []world.Object
	uid := uidOf(o.object)
	for _, key := range c.childKeys(uid, resource) {
		object, ok := c.store.Get(key)
		switch {
		case !ok || controllerOf(object) != uid:
		case o.selector.matches(world.Labels(object)):
			claimed = append(claimed, object)
		default:
			c.dropOwner(key, object, uid)
		}
	}
	adopted := false
	for _, key := range c.adriftKeys(resource, o.key.Namespace) {
		object, ok := c.store.Get(key)
		if !ok || controllerOf(object) != "" || deleting(object) || !o.selector.matches(world.Labels(object)) {
			continue
		}
		references := append(slices.Clone(items(object, "metadata", "ownerReferences")), any(o.reference()))
		if object = c.put(key, world.With(object, references, "metadata", "ownerReferences")); object != nil {
			claimed, adopted = append(claimed, object), true
		}
	}
	if adopted {
		slices.SortFunc(claimed, byName)
	}
	return claimed
}

// controlled returns the objects of a resource that the owner controls, without adopting or releasing any.
func (c *Cluster) controlled(uid string, resource world.Resource) []world.Object {
	var found []world.Object
	for _, key := range c.childKeys(uid, resource) {
		if object, ok := c.store.Get(key); ok && controllerOf(object) == uid {
			found = append(found, object)
		}
	}
	return found
}

func (c *Cluster) childKeys(uid string, resource world.Resource) []world.Key {
	c.mu.Lock()
	children := c.index.children[uid]
	c.mu.Unlock()
	from := slices.IndexFunc(children, func(key world.Key) bool { return key.Resource == resource })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(children) && children[to].Resource == resource {
		to++
	}
	return children[from:to]
}

func (c *Cluster) adriftKeys(resource world.Resource, namespace string) []world.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index.adrift[shelf{resource.Plural, namespace}]
}

// dropOwner removes the references of an object to an owner.
func (c *Cluster) dropOwner(key world.Key, object world.Object, uid string) {
	references := slices.DeleteFunc(slices.Clone(items(object, "metadata", "ownerReferences")), func(reference any) bool {
		r, ok := reference.(map[string]any)
		return ok && world.Text(r, "uid") == uid
	})
	c.put(key, world.With(object, references, "metadata", "ownerReferences"))
}

func byName(a, b world.Object) int { return compareText(nameOf(a), nameOf(b)) }

// byAge sorts by creation, then by name. The API keeps whole seconds, so names decide often, here as there.
func byAge(a, b world.Object) int {
	if order := compareText(createdAt(a), createdAt(b)); order != 0 {
		return order
	}
	return byName(a, b)
}
