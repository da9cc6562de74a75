package referent

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// The answers of a Graph are as of the last Evaluate.

// Hold says why a node is held; nil if it is not. A node that is in no graph is missing, or its resource is not known yet.
func (g *Graph) Hold(key Key) *Hold {
	if n, ok := g.nodes[key]; ok {
		return n.hold
	}
	resource, ok := g.schema.byName[key.GroupResource()]
	if !ok {
		return &Hold{Reason: Invalid, Node: key, Detail: "the configuration has no resource " + key.GroupResource().String()}
	}
	n := &node{key: key, resource: resource}
	if resource.builtin {
		n.unread = notRead(key)
	}
	if hold := g.unknown(n); hold != nil {
		return hold
	}
	return missing(n)
}

// State is the state of a node as a workload tracks it: the Entries cover the node and everything below it. While the node
// is held, its state is Absent if it is missing itself, and has no Entries else: what the workload has remains.
func (g *Graph) State(key Key) (digest.State, *Hold) {
	if hold := g.Hold(key); hold != nil {
		return digest.State{Absent: hold.Reason == Missing && hold.Node == key}, hold
	}
	state := digest.State{Entries: make(map[digest.KeyID]digest.Entry, len(g.keys))}
	for i, k := range g.keys {
		state.Entries[k.ID] = workloadEntry(k, entry(g.nodes[key], i))
	}
	return state, nil
}

// Content is what an object itself was, without what is below it; the zero Content is that of an absent one. Two contents of an object are the
// same where they are equal; those of graphs under other digest keys are not. It is a hash, as many are kept of objects with many references.
type Content struct {
	exists bool
	hash   uint64
}

// Absent reports whether there was no object.
func (c Content) Absent() bool { return !c.exists }

// Content returns the content of an object; false while it is held for another reason than its own absence.
func (g *Graph) Content(key Key) (Content, bool) {
	if hold := g.Hold(key); hold != nil {
		return Content{}, hold.Reason == Missing && hold.Node == key
	}
	return Content{exists: true, hash: g.nodes[key].facts.hash()}, true
}

// Exists reports whether there is an object.
func (all nodes) Exists(key Key) bool {
	n, ok := all[key]
	return ok && n.exists()
}

// Publication is what the annotation of a node must be, and whether it has to be written: only where the configuration
// asks for it, the node is not held, and the annotation says something else. A digest that is right under an older key of
// the ring remains; one under a key that is lost is replaced. Empty means no annotation.
func (g *Graph) Publication(key Key) (value string, due bool) {
	n, ok := g.nodes[key]
	if !ok || !n.resource.Publish || !n.exists() || n.hold != nil {
		return "", false
	}
	if id, ok := keyOf(n.annotation); ok {
		if i := slices.IndexFunc(g.keys, func(k digest.Key) bool { return k.ID == id }); i >= 0 && n.digest(i) == n.annotation {
			return n.annotation, false
		}
	}
	value = n.digest(len(g.keys) - 1)
	return value, value != n.annotation
}

// PublishedUnder returns the id of the key that the annotation of a node was made under, if the graph does not have that key; empty if it
// does, and where the annotation is no digest under a key.
func (g *Graph) PublishedUnder(key Key) digest.KeyID {
	n, ok := g.nodes[key]
	if !ok {
		return ""
	}
	id, ok := keyOf(n.annotation)
	if !ok || slices.ContainsFunc(g.keys, func(k digest.Key) bool { return k.ID == id }) {
		return ""
	}
	return id
}

// Problems are references of an object that are ignored. They hold nothing.
func (all nodes) Problems(key Key) []string {
	if n, ok := all[key]; ok && n.exists() {
		return slices.Clone(n.facts.problems)
	}
	return nil
}

// PathToCause leads from a node that is held down to the cause, both included; at most MaxDepth+2 keys.
func (all nodes) PathToCause(key Key) []Key {
	trail := []Key{key}
	for n := all[key]; n != nil && n.hold != nil && n.via != nil && len(trail) < MaxDepth+2; n = n.via {
		trail = append(trail, n.via.key)
	}
	return trail
}

// Path is the shortest path from a node down to another one, both included; nil if there is none. It leads from a cause to
// what has changed because of it.
func (all nodes) Path(from, to Key) []Key {
	start, end := all[from], all[to]
	switch {
	case start == nil || end == nil:
		return nil
	case start == end:
		return []Key{from}
	}
	return start.pathTo(end, func(*node) bool { return true })
}

// pathTo is the shortest path from a node down to another one, or back to itself, by way of some nodes alone; nil if there is none. It is
// the same for every order of visits.
func (n *node) pathTo(end *node, within func(*node) bool) []Key {
	came := map[*node]*node{}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		children := queue[0].childNodes()
		slices.SortFunc(children, (*node).compare)
		for _, child := range children {
			if child == end {
				path := []Key{end.key}
				for last := queue[0]; last != n; last = came[last] {
					path = append(path, last.key)
				}
				path = append(path, n.key)
				slices.Reverse(path)
				return path
			}
			if came[child] == nil && within(child) {
				came[child] = queue[0]
				queue = append(queue, child)
			}
		}
	}
	return nil
}

// Below returns the nodes below the given ones, these included, sorted: what a workload depends on.
func (all nodes) Below(roots ...Key) []Key { return all.reach(roots, (*node).childNodes, len(all)) }

// FewBelow is Below if these are at most so many nodes; false if there are more. Its effort does not depend on how many more.
func (all nodes) FewBelow(most int, roots ...Key) ([]Key, bool) {
	keys := all.reach(roots, (*node).childNodes, most)
	return keys, len(keys) <= most
}

// LeadingTo returns those of the given nodes below which there is a target, these included. Its effort does not depend on how many nodes
// are given: each node below them is asked for once.
func (all nodes) LeadingTo(target func(Key) bool, roots ...Key) []Key {
	below := all.Below(roots...)
	targets := slices.DeleteFunc(slices.Clone(below), func(key Key) bool { return !target(key) })
	above := all.reach(targets, func(n *node) []*node {
		return slices.DeleteFunc(n.parents(all), func(parent *node) bool { return !contains(below, parent.key) })
	}, len(all))
	return slices.DeleteFunc(slices.Clone(roots), func(root Key) bool { return !contains(above, root) })
}

// contains reports whether sorted keys have one.
func contains(keys []Key, key Key) bool {
	_, ok := slices.BinarySearchFunc(keys, key, Key.Compare)
	return ok
}

// reach returns the nodes that the given ones lead to, these included, sorted. Each is visited once, so that a cycle ends. It
// stops when there are more than most.
func (all nodes) reach(from []Key, next func(*node) []*node, most int) []Key {
	seen := map[*node]struct{}{}
	var keys []Key
	var stack []*node
	for _, key := range from {
		stack = append(stack, all[key])
	}
	for len(stack) > 0 && len(keys) <= most {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, ok := seen[n]; ok || n == nil {
			continue
		}
		seen[n] = struct{}{}
		keys = append(keys, n.key)
		stack = append(stack, next(n)...)
	}
	return sorted(keys)
}

// Held counts the causes of holds for each Reason: nodes that are held because of another one do not count, nor do missing ones that no
// other requires.
func (all nodes) Held() map[Reason]int {
	held := map[Reason]int{}
	for key, n := range all {
		if n.hold != nil && n.hold.Node == key && (n.hold.Reason != Missing || n.isRequired()) {
			held[n.hold.Reason]++
		}
	}
	return held
}

// isAbsentOptional reports whether a node that is held is missing, and every reference to it allows that.
func (n *node) isAbsentOptional() bool {
	return n.hold.Reason == Missing && len(n.above) > 0 && !n.isRequired()
}

// isRequired reports whether a node is held because of this one, which is held.
func (n *node) isRequired() bool {
	for parent := range n.above {
		if !parent.mayBeAbsent(n) {
			return true
		}
	}
	return false
}

// Has reports whether the graph has a node.
func (all nodes) Has(key Key) bool {
	_, ok := all[key]
	return ok
}

// Len is the number of nodes.
func (all nodes) Len() int { return len(all) }
