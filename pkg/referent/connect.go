package referent

import (
	"maps"
	"slices"
)

// node returns the node of a key, a new one where there is none.
func (g *Graph) node(key Key, resource *Resource) *node {
	if n, ok := g.nodes[key]; ok {
		return n
	}
	n := &node{key: key, resource: resource, above: map[*node]bool{}, pointing: map[*node]struct{}{}}
	if resource.builtin {
		n.unread = notRead(key)
		g.unread[n] = struct{}{}
	}
	g.nodes[key] = n
	g.mark(n)
	return n
}

// useAll adds to the uses of an object and of what its facts refer to. When its namespace crosses a bound, all nodes of it are evaluated
// again.
func (g *Graph) useAll(n *node, by int) {
	crossed := !n.resource.builtin && g.usage.add(n.key.Namespace, n, by)
	for _, link := range slices.Concat(n.facts.children, n.facts.parents) {
		if other, ok := g.nodes[link.to]; ok {
			crossed = g.usage.add(n.key.Namespace, other, by) || crossed
		}
	}
	if g.usage.grow(n.key.Namespace, size{links: by * n.facts.links}) || crossed {
		g.markWhere(func(other *node) bool { return other.key.Namespace == n.key.Namespace })
	}
}

// leaveOutAll adds to the objects whose references are left out, for each edge of one. All nodes that these can refer to are evaluated
// with the first object, and after the last one.
func (g *Graph) leaveOutAll(namespace string, f *facts, by int) {
	if f == nil {
		return
	}
	for _, edge := range f.leftOut {
		if g.leftOut.add(leftOut{edge, namespace}, by) {
			g.markWhere(func(n *node) bool { return n.resource == edge.to && edge.allows(namespace, n.key.Namespace) })
		}
	}
}

// put gives a node its facts, and connects it as they say.
func (g *Graph) put(n *node, f *facts, unread *Hold) {
	unchanged := n.unread.equal(unread) && (f == nil) == (n.facts == nil) && (f == nil || f.equal(n.facts))
	if unchanged {
		return
	}
	// What is left out of both counts on: an object that changes then concerns no others.
	g.leaveOutAll(n.key.Namespace, f, +1)
	g.leaveOutAll(n.key.Namespace, n.facts, -1)
	g.disconnect(n)
	n.facts, n.unread = f, unread
	if delete(g.unread, n); unread != nil && unread.Reason == Unsynced {
		g.unread[n] = struct{}{}
	}
	g.connect(n)
	n.touched = true
	g.mark(n)
	if f == nil {
		g.gone = append(g.gone, n)
	}
}

func (g *Graph) connect(n *node) {
	if n.facts == nil {
		return
	}
	for _, link := range n.facts.children {
		child := g.node(link.to, link.edge.to)
		n.children = append(n.children, child)
		child.above[n] = child.above[n] || !link.edge.optional
	}
	for _, link := range n.facts.parents {
		parent := g.node(link.to, link.edge.to)
		parent.pointing[n] = struct{}{}
		g.mark(parent)
	}
	g.useAll(n, +1)
}

// disconnect removes the node from its children and its parents. The node is then a cause of the change of each parent that has lost it.
func (g *Graph) disconnect(n *node) {
	if n.facts == nil {
		return
	}
	g.useAll(n, -1)
	for _, child := range n.children {
		delete(child.above, n)
		g.gone = append(g.gone, child)
	}
	n.children = nil
	for _, link := range n.facts.parents {
		if parent, ok := g.nodes[link.to]; ok {
			delete(parent.pointing, n)
			parent.pending.add(n.key)
			g.mark(parent)
			g.gone = append(g.gone, parent)
		}
	}
}

// mark makes a node and whatever is above it dirty.
func (g *Graph) mark(n *node) {
	for stack := []*node{n}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.dirty {
			continue
		}
		n.dirty = true
		g.dirty = append(g.dirty, n)
		stack = append(stack, n.parents(g.nodes)...)
	}
}

func (g *Graph) markWhere(matches func(*node) bool) {
	for _, n := range g.nodes {
		if matches(n) {
			g.mark(n)
		}
	}
}

// parents are the nodes that depend on this one, in any order, perhaps twice.
func (n *node) parents(nodes nodes) []*node {
	all := make([]*node, 0, len(n.above))
	for parent := range n.above {
		all = append(all, parent)
	}
	if n.facts == nil {
		return all
	}
	for _, link := range n.facts.parents {
		if parent, ok := nodes[link.to]; ok {
			all = append(all, parent)
		}
	}
	return all
}

// hasParents reports whether a node depends on this one. Each one that this one points to is in the graph.
func (n *node) hasParents() bool {
	return len(n.above) > 0 || n.facts != nil && len(n.facts.parents) > 0
}

// sweep removes nodes to which nothing refers: those without an object, and config objects.
func (g *Graph) sweep() {
	for _, n := range g.gone {
		needed := n.facts != nil && !n.resource.builtin || len(n.above) > 0 || len(n.pointing) > 0
		if !needed && g.nodes[n.key] == n {
			delete(g.nodes, n.key)
			delete(g.unread, n)
		}
	}
	g.gone = nil
}

// childNodes are the children of a node: those that it refers to in the order of the configuration and the document, then those
// that refer to it in the order of their keys; each once.
func (n *node) childNodes() []*node {
	all := make([]*node, 0, len(n.children)+len(n.pointing))
	seen := make(map[*node]struct{}, cap(all))
	add := func(child *node) {
		if _, ok := seen[child]; !ok {
			seen[child] = struct{}{}
			all = append(all, child)
		}
	}
	for _, child := range n.children {
		add(child)
	}
	for _, child := range slices.SortedFunc(maps.Keys(n.pointing), (*node).compare) {
		add(child)
	}
	return all
}

func (n *node) compare(o *node) int { return n.key.Compare(o.key) }

// optional reports whether a child may be absent: every reference to it must say so.
func (n *node) optional(child *node) bool { return !child.above[n] }

func sorted(keys []Key) []Key {
	slices.SortFunc(keys, Key.Compare)
	return keys
}
