package referent

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Graph has a node for each object that it was given, and for each that one of these refers to. It is for one goroutine:
// set what has changed, then Evaluate, then ask. What is set with equal facts changes nothing.
type Graph struct {
	schema *Schema
	nodes
	judge
	// unread are the config objects of which nothing has been set.
	unread map[*node]struct{}
	// dirty are the nodes that must be evaluated. Whatever is above one of them is dirty, too.
	dirty []*node
	// gone are the nodes that can be removed after the next evaluation, if nothing refers to them then.
	gone []*node
}

// nodes are those of a graph. They answer what follows from their references, and from how they were evaluated last.
type nodes map[Key]*node

// node is one object, or a reference to one that is missing. Its facts are never changed in place.
type node struct {
	key      Key
	resource *Resource
	facts    *facts // nil: no such object, or nothing known of it
	// unread is why nothing is known of a ConfigMap or a Secret; nil if it is known.
	unread *Hold
	// annotation is the published digest as it is on the object, where it is written from here. It is no fact: writing it
	// changes nothing.
	annotation string
	// children are the nodes of facts.children, in their order.
	children []*node
	// above are the nodes that refer to this one, and whether one of the references of each requires it.
	above map[*node]bool
	// pointing are the nodes whose facts.parents have this one.
	pointing map[*node]struct{}
	memo
}

// memo is the last evaluation of a node.
type memo struct {
	dirty, touched, visited bool
	round                   int
	height                  int
	hold                    *Hold
	// via is the child because of which the node is held.
	via *node
	// digests has one for each key; a single one where it is not under a key.
	digests []string
	// pending are the causes since the digest was last computed, released those of the last computation.
	pending, released causes
}

func (n *node) exists() bool { return n.facts != nil }

// digest is the node's own digest under the i-th key; empty for a config object, whose content is its version.
func (n *node) digest(i int) string {
	if len(n.digests) == 0 {
		return ""
	}
	return n.digests[min(i, len(n.digests)-1)]
}

// NewGraph makes an empty graph whose digests are under the keys of the ring. With another ring or schema, make another
// graph and set everything again. The error is digest.ErrNoKey.
func NewGraph(schema *Schema, ring digest.Ring) (*Graph, error) {
	if ring.Empty() {
		return nil, digest.ErrNoKey
	}
	return &Graph{
		schema: schema, nodes: nodes{}, unread: map[*node]struct{}{}, judge: judge{
			keys: ring.Keys(), sources: sources{}, leftOut: omissions{}, usage: usage{uses: map[use]int{}, sizes: map[string]size{}},
		},
	}, nil
}

// NewEmpty returns an empty graph of the same schema and sources, whose digests are under the keys of a ring. References that are left out
// are so there, too.
func (g *Graph) NewEmpty(ring digest.Ring) (*Graph, error) {
	next, err := NewGraph(g.schema, ring)
	if err == nil {
		next.sources, next.leftOut = maps.Clone(g.sources), maps.Clone(g.leftOut)
	}
	return next, err
}

// Put takes an object as it is now.
func (g *Graph) Put(o *Object) {
	n := g.node(o.key, o.resource)
	n.annotation = o.annotation
	g.put(n, o.under(g.keys), nil)
}

// Delete takes an object of a custom resource as absent.
func (g *Graph) Delete(key Key) {
	if n, ok := g.nodes[key]; ok {
		g.put(n, nil, nil)
	}
}

// SetConfig takes the state of a ConfigMap or a Secret, if anything refers to it. A state without an Entry under each key of the ring
// counts as not read.
func (g *Graph) SetConfig(namespace string, ref reference.Ref, state digest.State) {
	n, ok := g.nodes[ConfigKey(namespace, ref)]
	if !ok {
		return
	}
	switch read := configFacts(n.resource, state, g.keys); {
	case state.Absent:
		g.put(n, nil, nil)
	case read == nil:
		g.put(n, nil, notRead(n.key))
	default:
		g.put(n, read, nil)
	}
}

// Refers reports whether anything refers to a ConfigMap or a Secret.
func (all nodes) Refers(namespace string, ref reference.Ref) bool {
	return all.Has(ConfigKey(namespace, ref))
}

// SetForbidden says that a ConfigMap or a Secret may not be read, and why.
func (g *Graph) SetForbidden(namespace string, ref reference.Ref, detail string) {
	if n, ok := g.nodes[ConfigKey(namespace, ref)]; ok {
		g.put(n, nil, &Hold{Reason: Forbidden, Node: n.key, Detail: detail})
	}
}

// SetUnreadable says that a ConfigMap or a Secret cannot be read, and why, and reports whether that counts: where something else is known
// of the object, only a failure that lasts counts.
func (g *Graph) SetUnreadable(namespace string, ref reference.Ref, detail string, lasting bool) bool {
	n, ok := g.nodes[ConfigKey(namespace, ref)]
	if !ok || !lasting && (n.unread == nil || n.unread.Reason != Unsynced) {
		return false
	}
	g.put(n, nil, &Hold{Reason: Unsynced, Node: n.key, Detail: detail})
	return true
}

// configFacts are the facts of a config object; nil where an Entry is missing.
func configFacts(resource *Resource, state digest.State, keys []digest.Key) *facts {
	f := &facts{version: version{rule: "entry"}}
	for _, key := range keys {
		entry, ok := state.Entry(key.ID)
		if !ok {
			return nil
		}
		f.version.sums = append(f.version.sums, entry)
	}
	if resource.identified {
		f.identity = identifyState(state)
	}
	return f
}

func notRead(key Key) *Hold {
	return &Hold{Reason: Unsynced, Node: key, Detail: "its content has not been read yet"}
}

// SetSource says what is known of the objects of a custom resource in a namespace; the empty one is all that have no
// source of their own. Before, they are SourceUnsynced.
func (g *Graph) SetSource(resource *Resource, namespace string, source Source) {
	g.setSource(resource, namespace, sourceState{Source: source})
}

// SetUnsynced sets SourceUnsynced, and why the objects cannot be read.
func (g *Graph) SetUnsynced(resource *Resource, namespace, failure string) {
	g.setSource(resource, namespace, sourceState{SourceUnsynced, failure})
}

func (g *Graph) setSource(resource *Resource, namespace string, source sourceState) {
	if !g.sources.set(resource, namespace, source) {
		return
	}
	g.markWhere(func(n *node) bool { return n.resource == resource || n.resource.listens(resource) })
}

// listens reports whether objects of the other resource can be children because they refer to this one's.
func (r *Resource) listens(other *Resource) bool {
	for _, edge := range r.referrers {
		if edge.from == other {
			return true
		}
	}
	return false
}

// UnreadConfig returns the ConfigMaps and Secrets that are referred to, and of which nothing has been set.
func (g *Graph) UnreadConfig() []Key {
	keys := make([]Key, 0, len(g.unread))
	for n := range g.unread {
		keys = append(keys, n.key)
	}
	return sorted(keys)
}

// Referred returns the nodes that others depend on, sorted: all ConfigMaps and Secrets, and the custom resources that are no roots.
func (all nodes) Referred() []Key {
	var keys []Key
	for key, n := range all {
		if n.hasParents() {
			keys = append(keys, key)
		}
	}
	return sorted(keys)
}

// causes are the objects that have changed since the digest was last computed: the first MaxCauses by key. They gather
// while a node is held, and name the change when it takes effect.
type causes []Key

// MaxCauses is how many objects a Change names.
const MaxCauses = 5

func (c *causes) add(keys ...Key) {
	if len(keys) == 0 {
		return
	}
	all := sorted(slices.Concat(*c, keys))
	all = slices.Compact(all)
	*c = all[:min(len(all), MaxCauses)]
}
