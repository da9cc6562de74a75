package chain

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// maxSteps is how many changes of a custom resource are kept, so that a reload can name what has led to it.
const maxSteps = 8

// steps are the latest changes of a custom resource that a workload tracks. The list is never changed in place.
type steps struct {
	entry string
	list  []digest.Step
}

// steps returns those of a node, and begins to keep them.
func (c *Chain) steps(key referent.Key, state digest.State) []digest.Step {
	c.answers.RLock()
	kept, ok := c.tracked[key]
	c.answers.RUnlock()
	if ok {
		return kept.list
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	if _, ok := c.tracked[key]; !ok && c.tracked != nil {
		c.tracked[key] = steps{entry: c.entryOf(state)}
	}
	return nil
}

// step adds a change of a node, if a workload tracks it.
func (c *Chain) step(change referent.Change) {
	before, ok := c.tracked[change.Key]
	if !ok {
		return
	}
	state, hold := c.graph.State(change.Key)
	now := c.entryOf(state)
	if hold != nil || now == before.entry {
		return
	}
	one := digest.Step{From: before.entry}
	for _, cause := range change.Causes {
		one.Causes = append(one.Causes, cause.String())
	}
	list := before.list[max(0, len(before.list)+1-maxSteps):]
	c.tracked[change.Key] = steps{entry: now, list: append(slices.Clone(list), one)}
}

// entryOf returns the Entry under the newest key, as a Record keeps it.
func (c *Chain) entryOf(state digest.State) string {
	newest, _ := c.options.Ring().Newest()
	entry, _ := state.Entry(newest.ID)
	return entry.Short()
}
