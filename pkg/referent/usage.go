package referent

import "fmt"

// usage is what each namespace has of a graph.
type usage struct {
	// uses are why a node counts in a namespace: the object is in it, and each reference from its objects. References to an object
	// that does not exist must not fill the namespace of others.
	uses  map[use]int
	sizes map[string]size
}

// use names a node and the namespace in which it counts.
type use struct {
	namespace string
	node      *node
}

// size is how many nodes count in a namespace, and how many references its objects have.
type size struct{ nodes, links int }

func (s size) tooMany() bool { return s.nodes > MaxNodes || s.links > MaxLinks }

// excess says what a namespace has too many of.
func (s size) excess() string {
	if s.nodes > MaxNodes {
		return fmt.Sprintf("%d objects in its graph, what they refer to included", MaxNodes)
	}
	return fmt.Sprintf("%d references in its graph", MaxLinks)
}

// of is the size of a namespace.
func (u usage) of(namespace string) size { return u.sizes[namespace] }

// add adds to the reasons for which a node counts in a namespace, and reports whether that crosses a bound.
func (u usage) add(namespace string, n *node, by int) bool {
	at := use{namespace, n}
	before := u.uses[at]
	switch u.uses[at] = before + by; {
	case before == 0:
		return u.grow(namespace, size{nodes: +1})
	case before+by == 0:
		delete(u.uses, at)
		return u.grow(namespace, size{nodes: -1})
	}
	return false
}

// grow adds to the size of a namespace, and reports whether that crosses a bound.
func (u usage) grow(namespace string, by size) bool {
	before := u.sizes[namespace]
	now := size{nodes: before.nodes + by.nodes, links: before.links + by.links}
	if u.sizes[namespace] = now; now == (size{}) {
		delete(u.sizes, namespace)
	}
	return before.tooMany() != now.tooMany()
}

// omissions count the objects whose references to parents are left out.
type omissions map[leftOut]int

// leftOut names an edge and the namespace of the objects that refer by it.
type leftOut struct {
	edge      *edge
	namespace string
}

// add adds to the objects, and reports whether they are the first or were the last.
func (o omissions) add(at leftOut, by int) bool {
	before := o[at]
	if o[at] = before + by; before+by == 0 {
		delete(o, at)
		return true
	}
	return before == 0
}

// reach reports whether references are left out that can lead to an object in a namespace.
func (o omissions) reach(e *edge, namespace string) bool {
	for at := range o {
		if at.edge == e && e.allows(at.namespace, namespace) {
			return true
		}
	}
	return false
}
