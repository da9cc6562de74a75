package chain

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
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

// OnReread registers a function that is called when Workload finds something else than before, before Start. It must return
// soon.
func (c *Chain) OnReread(handler func()) { c.rereaders = append(c.rereaders, handler) }

// Exists reports whether there is an object of a custom resource, as far as the watches have delivered it.
func (c *Chain) Exists(namespace string, ref reference.Ref) bool {
	c.answers.RLock()
	defer c.answers.RUnlock()
	resource, ok := c.schema.Resource(ref.Kind.GroupResource())
	return ok && c.graph != nil && c.graph.Exists(resource.Key(namespace, ref.Name))
}

// Listed says why it is not known yet which objects exist by which workloads of a namespace are found; nil if it is known. Where
// they may not be listed, or their resource is not installed, there are none.
func (c *Chain) Listed(namespace string) error {
	rules := c.rules.Load()
	if rules == nil {
		return nil // there is nothing to find yet
	}
	c.answers.RLock()
	defer c.answers.RUnlock()
	for _, resource := range rules.Resources() {
		if !resource.Selects() {
			continue
		}
		current, ok := c.schema.Resource(resource.GVR.GroupResource())
		if !ok || c.graph == nil || c.graph.Source(current, namespace) == referent.SourceUnsynced {
			return fmt.Errorf("the objects of %s are not listed yet", resource)
		}
	}
	return nil
}
