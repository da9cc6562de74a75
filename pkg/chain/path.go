package chain

import (
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// Path returns what leads from an object up to a custom resource that a workload of a namespace tracks, both included; nil if the
// object is not below the resource, or is the resource itself. cause is the object, as Because of a State names it; the empty
// one is what the resource is held for.
func (c *Chain) Path(namespace string, ref reference.Ref, cause string) []string {
	c.answers.RLock()
	defer c.answers.RUnlock()
	resource, ok := c.schema.Resource(ref.Kind.GroupResource())
	if !ok || c.graph == nil {
		return nil
	}
	keys := c.pathLocked(resource.Key(namespace, ref.Name), cause)
	if len(keys) < 2 {
		return nil
	}
	path := make([]string, 0, len(keys))
	for i := range keys {
		path = append(path, keys[len(keys)-1-i].In(namespace))
	}
	return path
}

func (c *Chain) pathLocked(root referent.Key, cause string) []referent.Key {
	if cause == "" {
		return c.graph.Trail(root)
	}
	for _, key := range c.graph.Below(root) {
		if key.String() == cause {
			return c.graph.Path(root, key)
		}
	}
	return nil
}
