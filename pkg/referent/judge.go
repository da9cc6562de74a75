package referent

import (
	"fmt"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// judge decides why a node is held, and what its digest is. Of a graph, it needs the node and its children alone, and it
// changes no other node.
type judge struct {
	keys    []digest.Key // oldest first
	sources sources
	usage   usage
	leftOut omissions
	round   int
}

// visible are the children of a node; none in a namespace with too many, which is held whatever they are.
func (j *judge) visible(n *node) []*node {
	if j.usage.of(n.key.Namespace).tooMany() {
		return nil
	}
	return n.childNodes()
}

// evaluate computes a node whose children have been evaluated, or are on a cycle with it, and reports what is new.
func (j *judge) evaluate(n *node, cycle []Key) (Change, bool) {
	before, digestsBefore, touched, first := n.hold, n.digests, n.touched, n.round == 0
	children := j.visible(n)
	n.dirty, n.touched, n.round = false, false, j.round
	n.height, n.via = height(children, cycle), nil
	n.hold = j.holdReason(n, children, cycle)
	n.collectCauses(children, touched)
	if n.hold != nil {
		n.digests = nil
		known := before.equal(n.hold) || first && n.hold.Reason == Missing
		return Change{Key: n.key, Held: true}, !known
	}
	n.digests = j.compute(n, children)
	same := before == nil && !touched && !first && slices.Equal(digestsBefore, n.digests)
	return Change{Key: n.key, Causes: n.released}, !same
}

// height is how many references follow each other below the node.
func height(children []*node, cycle []Key) int {
	if cycle != nil {
		return 0
	}
	most := 0
	for _, child := range children {
		most = max(most, child.height+1)
	}
	return most
}

// holdReason finds the first reason to hold a node; nil if there is none. A reason below the node comes before its own
// readiness, which usually fails because of it.
func (j *judge) holdReason(n *node, children []*node, cycle []Key) *Hold {
	for _, check := range []func() *Hold{
		func() *Hold { return j.unknown(n) },
		func() *Hold { return missing(n) },
		func() *Hold { return n.facts.fault },
		func() *Hold { return cyclic(n, cycle) },
		func() *Hold { return j.incomplete(n) },
		func() *Hold { return heldBelow(n, children) },
		func() *Hold { return deep(n) },
		func() *Hold { return n.facts.unready },
	} {
		if hold := check(); hold != nil {
			return hold
		}
	}
	return nil
}

// unknown holds a node of which nothing certain is known, or of a namespace with too many.
func (j *judge) unknown(n *node) *Hold {
	if j.usage.of(n.key.Namespace).tooMany() {
		return &Hold{Reason: TooMany, Node: n.key, Detail: "the namespace has more than " + j.usage.of(n.key.Namespace).excess()}
	}
	if source := j.sources.of(n.resource, n.key.Namespace); source.Source != SourceSynced {
		return &Hold{Reason: source.reason(), Node: n.key, Detail: j.sources.unknownResource(n.resource, source), Lacking: n.resource}
	}
	return n.unread
}

// unknownResource says which resource is not known. A cluster can serve it in another version than that of the configuration, or, where
// each namespace has a source of its own, without namespaces.
func (s sources) unknownResource(r *Resource, source sourceState) string {
	_, everywhere := s[sourceKey{resource: r}]
	switch {
	case source.Source == SourceNotInstalled && !everywhere:
		return "the cluster does not serve " + r.String() + " in version " + r.GVR.Version +
			", or its objects have no namespace: then set scope: Cluster in " + r.at
	case source.Source == SourceNotInstalled:
		return "the cluster does not serve " + r.String() + " in version " + r.GVR.Version
	case source.Source == SourceOutside:
		return "the namespace is not watched"
	case source.Source == SourceOtherScope && r.ClusterScoped:
		return r.at + ".scope: objects of " + r.String() + " have a namespace; leave out scope: Cluster"
	case source.Source == SourceOtherScope:
		return r.at + ".scope: objects of " + r.String() + " have no namespace; set scope: Cluster"
	case source.failure != "":
		return "the resource " + r.String() + " cannot be read: " + source.failure
	default:
		return "the resource " + r.String()
	}
}

func missing(n *node) *Hold {
	if n.exists() {
		return nil
	}
	return &Hold{Reason: Missing, Node: n.key}
}

func cyclic(n *node, cycle []Key) *Hold {
	if cycle == nil {
		return nil
	}
	return &Hold{Reason: Cycle, Node: n.key, Detail: pathText(cycle)}
}

// pathText describes a path in a message: a → b → a. It names the first maxPath keys.
func pathText(keys []Key) string {
	const maxPath = 20
	text := ""
	for i, key := range keys {
		if i == maxPath {
			return fmt.Sprintf("%s → … (%d more)", text, len(keys)-i)
		}
		if i > 0 {
			text += " → "
		}
		text += key.In(keys[0].Namespace)
	}
	return text
}

// incomplete holds a node to which objects can refer that have not all been read.
func (j *judge) incomplete(n *node) *Hold {
	for _, edge := range n.resource.referrers {
		if namespace := j.sources.unwatched(edge); namespace != "" {
			detail := fmt.Sprintf("the namespace %s is not watched, and %s in it can refer to this one", namespace, edge.from)
			return &Hold{Reason: SourceOutside.reason(), Node: n.key, Detail: detail, Lacking: edge.from}
		}
		if source := j.sources.referrers(edge, n.key.Namespace); source.Source != SourceSynced {
			detail := j.sources.unknownResource(edge.from, source) + ", and its objects can refer to this one"
			return &Hold{Reason: source.reason(), Node: n.key, Detail: detail, Lacking: edge.from}
		}
		if j.leftOut.reach(edge, n.key.Namespace) {
			detail := fmt.Sprintf("references of %s, which can lead to this one, are left out: a namespace had more than %d", edge.from, MaxLinks)
			return &Hold{Reason: TooMany, Node: n.key, Detail: detail}
		}
	}
	return nil
}

// heldBelow holds a node because of a child: of the first one by key. A child that is only missing may be so where it is
// optional; nothing else is excused by that.
func heldBelow(n *node, children []*node) *Hold {
	var first *node
	for _, child := range children {
		if child.hold != nil && !n.mayBeAbsent(child) && (first == nil || child.compare(first) < 0) {
			first = child
		}
	}
	if first == nil {
		return nil
	}
	n.via = first
	return first.hold
}

// mayBeAbsent reports whether a child that is held is absent, and may be.
func (n *node) mayBeAbsent(child *node) bool {
	return child.hold.Reason == Missing && child.hold.Node == child.key && n.optional(child)
}

func deep(n *node) *Hold {
	if n.height <= MaxDepth {
		return nil
	}
	return &Hold{Reason: TooDeep, Node: n.key, Detail: fmt.Sprintf("%d references follow each other, at most %d may", n.height, MaxDepth)}
}

// collectCauses gathers the objects that have changed since the digest was last computed, and releases them when it is.
func (n *node) collectCauses(children []*node, touched bool) {
	if touched {
		n.pending.add(n.key)
	}
	for _, child := range children {
		switch {
		case child.round != n.round:
		case child.hold == nil:
			n.pending.add(child.released...)
		case n.mayBeAbsent(child):
			n.pending.add(child.pending...)
		}
	}
	n.released = nil
	if n.hold == nil {
		n.released, n.pending = n.pending, nil
	}
}

// compute returns the digests of a node that is not held: one for each key, or one that is under no key.
func (j *judge) compute(n *node, children []*node) []string {
	switch {
	case n.resource.builtin:
		return nil
	case n.resource.Published:
		return []string{n.facts.published}
	case n.resource.CRC32:
		return []string{sumCRC32(children)}
	}
	digests := make([]string, 0, len(j.keys))
	for i, key := range j.keys {
		entries := make([][]byte, 0, len(children))
		for _, child := range children {
			entries = append(entries, entry(child, i))
		}
		digests = append(digests, sum(key, entries))
	}
	return digests
}
