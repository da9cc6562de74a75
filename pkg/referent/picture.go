package referent

import (
	"maps"
	"slices"
)

// Picture is a part of a Graph for people: plain data, in an order that depends on nothing but the content.
type Picture struct {
	Roots []Key
	Nodes []PictureNode
	Edges []PictureEdge
}

// PictureNode is a node and its state.
type PictureNode struct {
	Key Key
	// Absent says that the node is missing, and that nothing is held because of that.
	Absent bool
	// Hold is nil for a node that is not held.
	Hold *Hold
	// Problems are references that are ignored.
	Problems []string
}

// State is ok, absent, or the text of the Hold.
func (n PictureNode) State() string {
	switch status := n.status(); {
	case status == "held":
		return "held by " + n.Hold.Node.In(n.Key.Namespace) + ": " + string(n.Hold.Reason)
	case status != "cause":
		return status
	case n.Hold.Detail == "":
		return string(n.Hold.Reason)
	default:
		return string(n.Hold.Reason) + ": " + n.Hold.Detail
	}
}

// status is ok, absent, held, or cause for a node that is held because of itself.
func (n PictureNode) status() string {
	switch {
	case n.Absent:
		return "absent"
	case n.Hold == nil:
		return "ok"
	case n.Hold.Node == n.Key:
		return "cause"
	default:
		return "held"
	}
}

// PictureEdge leads from a parent to a child.
type PictureEdge struct {
	From, To Key
	// Optional says that the child may be absent.
	Optional bool
}

// Picture shows what is below the roots, and why a root is held that the graph does not have. Without roots it shows everything, from the
// nodes that nothing refers to; a cycle without such a node is shown from its first one. Then it also has a root without a name for each
// list whose objects are not known.
func (g *Graph) Picture(roots ...Key) Picture {
	var p Picture
	if len(roots) == 0 {
		p.Roots = sorted(append(g.roots(), g.sources.unknown()...))
	} else {
		p.Roots = slices.Compact(sorted(slices.Clone(roots)))
	}
	for _, key := range p.Roots {
		if !g.Has(key) {
			p.Nodes = append(p.Nodes, PictureNode{Key: key, Hold: g.Hold(key)})
		}
	}
	for _, key := range g.Below(p.Roots...) {
		n := g.nodes[key]
		drawn := PictureNode{Key: key, Hold: n.hold, Problems: g.Problems(key)}
		if n.hold != nil && n.isAbsentOptional() {
			drawn.Absent, drawn.Hold = true, nil
		}
		p.Nodes = append(p.Nodes, drawn)
		children := n.childNodes()
		slices.SortFunc(children, (*node).compare)
		for _, child := range children {
			_, points := n.pointing[child]
			p.Edges = append(p.Edges, PictureEdge{From: key, To: child.key, Optional: !points && n.optional(child)})
		}
	}
	return p
}

// roots are the nodes that nothing refers to, and one of each cycle that none of them leads to.
func (all nodes) roots() []Key {
	var keys []Key
	for key, n := range all {
		if len(n.parents(all)) == 0 {
			keys = append(keys, key)
		}
	}
	shown := map[Key]bool{}
	for _, key := range all.Below(keys...) {
		shown[key] = true
	}
	for _, key := range sorted(slices.Collect(maps.Keys(all))) {
		if shown[key] {
			continue
		}
		keys = append(keys, key)
		for _, below := range all.Below(key) {
			shown[below] = true
		}
	}
	return sorted(keys)
}
