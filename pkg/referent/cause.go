package referent

import "slices"

// causes are the objects that have changed since the digest was last computed: the first maxCauses by key. They gather
// while a node is held, and name the change when it takes effect.
type causes []Key

// maxCauses is how many objects a Change names.
const maxCauses = 5

func (c *causes) add(keys ...Key) {
	if len(keys) == 0 {
		return
	}
	all := sorted(slices.Concat(*c, keys))
	all = slices.Compact(all)
	*c = all[:min(len(all), maxCauses)]
}
