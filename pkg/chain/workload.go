package chain

import (
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Workload finds the custom resources that a workload runs with without naming them; it is an annotation.Finder.
func (c *Chain) Workload(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
	rules := c.rules.Load()
	if rules == nil {
		return nil, nil, false
	}
	owned, labelled = rules.Workload(labels, owners)
	return owned, labelled, true
}

// OnReread registers, before Start, a function that is called when Workload, Check and State may answer otherwise than before without an
// event: a configuration was read, or is another one, or there is a digest key at last. It must return soon.
func (c *Chain) OnReread(handler func()) { c.rereaders = append(c.rereaders, handler) }

// Exists reports whether there is an object of a custom resource, as far as the watches have delivered it. Before they have, or
// where they may not, what is recorded is tracked and held; anything else is reported when it is delivered.
func (c *Chain) Exists(namespace string, ref reference.Ref) bool {
	c.answers.RLock()
	defer c.answers.RUnlock()
	resource, ok := c.schema.Resource(ref.Kind.GroupResource())
	return ok && c.graph != nil && c.graph.Exists(resource.Key(namespace, ref.Name))
}
