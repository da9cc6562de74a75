package referent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkDepth reports chains of resources that no object could ever pass. Resources that refer to each other in a circle
// count once: whether their objects do, shows in the graph.
func (c *compiler) checkDepth(path *field.Path, resources []*Resource) {
	d := depths{reached: map[*Resource]map[*Resource]bool{}, depth: map[*Resource]int{}}
	for _, r := range resources {
		d.reached[r] = map[*Resource]bool{}
		reach(r, d.reached[r])
	}
	for i, r := range resources {
		// The ones above it are as wrong, and are so because of it.
		if depth := d.of(r); depth == MaxDepth+1 {
			c.add(field.Invalid(path.Index(i), r.ID, fmt.Sprintf("%d references follow each other: the limit is %d", depth, MaxDepth)))
		}
	}
}

// reach adds the resources that are below one.
func reach(r *Resource, below map[*Resource]bool) {
	for _, child := range r.children() {
		if !below[child] {
			below[child] = true
			reach(child, below)
		}
	}
}

// children are the resources of an object's children.
func (r *Resource) children() []*Resource {
	var all []*Resource
	for _, edge := range r.refs {
		all = append(all, edge.to)
	}
	for _, edge := range r.referrers {
		all = append(all, edge.from)
	}
	return all
}

type depths struct {
	reached map[*Resource]map[*Resource]bool
	depth   map[*Resource]int
}

// of is the longest chain below a resource, in references.
func (d depths) of(r *Resource) int {
	if known, ok := d.depth[r]; ok {
		return known
	}
	longest := 0
	for below := range d.reached[r] {
		if !d.reached[below][r] {
			longest = max(longest, d.of(below)+1)
		}
	}
	d.depth[r] = longest
	return longest
}
