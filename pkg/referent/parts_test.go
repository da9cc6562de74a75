package referent

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
)

// An object that is equal is not taken in: each part counts.
func TestEqualComparesEachPart(t *testing.T) {
	t.Parallel()
	same := func() *Object { return &Object{key: Key{Name: "a"}, annotation: "x"} }
	require.True(t, same().Equal(same()), "all parts are equal")
	for part, change := range map[string]func(*Object){
		"key":        func(o *Object) { o.key.Name = "b" },
		"own":        func(o *Object) { o.own.text = "1" },
		"annotation": func(o *Object) { o.annotation = "y" },
		"version":    func(o *Object) { o.facts.version.text = "1" },
		"identity":   func(o *Object) { o.facts.identity.generation = 1 },
		"published":  func(o *Object) { o.facts.published = "1" },
		"children":   func(o *Object) { o.facts.children = []link{{}} },
		"parents":    func(o *Object) { o.facts.parents = []link{{}} },
		"links":      func(o *Object) { o.facts.links = 1 },
		"left out":   func(o *Object) { o.facts.leftOut = []*edge{{}} },
		"fault":      func(o *Object) { o.facts.fault = &Hold{} },
		"unready":    func(o *Object) { o.facts.unready = &Hold{} },
		"problems":   func(o *Object) { o.facts.problems = []string{"a"} },
	} {
		other := same()
		change(other)
		assert.False(t, same().Equal(other), part)
	}
	hold := Hold{Reason: Missing, Node: Key{Name: "a"}, Detail: "d"}
	for _, other := range []Hold{{NotReady, hold.Node, "d", nil}, {Missing, Key{Name: "b"}, "d", nil}, {Missing, hold.Node, "e", nil}} {
		assert.False(t, hold.equal(&other), other)
	}
}

func TestSourcesOfReferrers(t *testing.T) {
	t.Parallel()
	from, other := &Resource{ID: "from"}, &Resource{ID: "other"}
	e := &edge{from: from, inverse: true, namespaces: []string{"a"}}
	for name, c := range map[string]struct {
		sources   sources
		namespace string
		want      Source
	}{
		"of an allowed namespace":         {sources{{from, "a"}: {Source: SourceForbidden}, {resource: from}: {Source: SourceSynced}}, "n", SourceForbidden},
		"of another resource":             {sources{{other, "a"}: {Source: SourceForbidden}, {resource: from}: {Source: SourceSynced}}, "n", SourceSynced},
		"of no allowed namespace":         {sources{{from, "b"}: {Source: SourceForbidden}, {resource: from}: {Source: SourceSynced}}, "n", SourceSynced},
		"of the namespace, not of all":    {sources{{from, "n"}: {Source: SourceSynced}, {resource: from}: {Source: SourceForbidden}}, "n", SourceSynced},
		"cluster-scoped":                  {sources{{from, "a"}: {Source: SourceSynced}}, "", SourceSynced},
		"cluster-scoped, none is allowed": {sources{{from, "b"}: {Source: SourceSynced}}, "", SourceOutside},
		"cluster-scoped, also of all":     {sources{{from, "a"}: {Source: SourceSynced}, {resource: from}: {Source: SourceForbidden}}, "", SourceForbidden},
		"the namespace is not watched":    {sources{{from, "a"}: {Source: SourceSynced}}, "n", SourceOutside},
		"nothing is known":                {sources{{other, "a"}: {Source: SourceSynced}}, "n", SourceUnsynced},
	} {
		assert.Equal(t, c.want, c.sources.referrers(e, c.namespace).Source, name)
	}
	left := omissions{{&edge{}, "a"}: 1, {e, "b"}: 1}
	assert.False(t, left.reach(e, "n"), "those of another edge, and of a namespace that is not allowed")
	left[leftOut{e, "a"}] = 1
	assert.True(t, left.reach(e, "n"), "a reference of this edge was left out in an allowed namespace")
}

func TestWorseOfTwoSources(t *testing.T) {
	t.Parallel()
	synced, unsynced, forbidden := sourceState{Source: SourceSynced}, sourceState{Source: SourceUnsynced}, sourceState{Source: SourceForbidden}
	failed, later := sourceState{SourceUnsynced, "a"}, sourceState{SourceUnsynced, "b"}
	for _, c := range []struct{ a, b, want sourceState }{
		{synced, synced, synced},
		{unsynced, synced, unsynced},
		{forbidden, synced, forbidden},
		{unsynced, forbidden, forbidden},
		{unsynced, failed, failed},
		{failed, later, later},
	} {
		assert.Equal(t, c.want, worse(c.a, c.b), "%v and %v", c.a, c.b)
		assert.Equal(t, c.want, worse(c.b, c.a), "%v and %v", c.b, c.a)
	}
}

func TestTextsOfHolds(t *testing.T) {
	t.Parallel()
	keys := make([]Key, 25)
	for i := range keys {
		keys[i] = Key{Resource: "r", Name: fmt.Sprint(i)}
	}
	assert.True(t, strings.HasSuffix(pathText(keys), "19 → … (5 more)"), pathText(keys))
	assert.Contains(t, size{nodes: MaxNodes, links: MaxLinks + 1}.excess(), "references")
	assert.Contains(t, size{nodes: MaxNodes + 1}.excess(), "objects")
}

// Which child a node is held by does not depend on the order of its references.
func TestFirstHeldChildCounts(t *testing.T) {
	t.Parallel()
	held := func(name string) *node {
		return &node{key: Key{Name: name}, memo: memo{hold: &Hold{Reason: NotReady, Node: Key{Name: name}}}}
	}
	a, b := held("a"), held("b")
	for _, children := range [][]*node{{a, b}, {b, a}} {
		n := &node{}
		assert.Equal(t, a.hold, heldBelow(n, children))
		assert.Equal(t, a, n.via)
	}
	above := func(name string) *node { return &node{key: Key{Name: name}, memo: memo{hold: a.hold}} }
	g := &Graph{nodes: map[Key]*node{a.key: a, {Name: "c"}: above("c"), {Name: "d"}: above("d")}}
	assert.Equal(t, 1, g.Held()[NotReady], "causes alone")
	state, hold := g.State(a.key)
	assert.Equal(t, a.hold, hold)
	assert.False(t, state.Absent, "it is held, and exists")
}

func TestRefusedReferences(t *testing.T) {
	t.Parallel()
	l := linkReader{facts: &facts{}}
	for i := range maxProblems + 2 {
		l.refuse(&edge{inverse: true}, Denied, fmt.Sprint(i))
		l.refuse(&edge{inverse: true}, Denied, fmt.Sprint(i))
	}
	assert.Equal(t, []string{"0", "1", "2", "3", "4"}, l.facts.problems, "each once, and a bounded number")
	for _, c := range [][2]any{{7, nil}, {"a", 7}, {"a", "B/x"}, {"A/b", "m"}} {
		_, ok := l.resolve(&edge{to: &Resource{}}, c[0], c[1])
		assert.False(t, ok, c)
	}
	_, ok := l.resolve(&edge{to: &Resource{}}, "a", "m")
	assert.True(t, ok, "the reference is valid")
}

func TestNumbersHaveOneText(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{1e6: "1000000", 0.5: "0.5", exact - 1: "9007199254740991", exact: "9.007199254740992e+15", math.Inf(1): "+Inf"} {
		assert.Equal(t, want, number(value))
	}
}

func TestIdentityWithoutAGenerationHasTheVersion(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"}}}
	assert.Equal(t, identity{uid: "u", resourceVersion: "7"}, identify(object))
	object.SetGeneration(3)
	assert.Equal(t, identity{uid: "u", generation: 3}, identify(object))
}

func TestAsManyResourcesAsCanBe(t *testing.T) {
	t.Parallel()
	_, faults := Compile(field.NewPath("referents"), make([]Definition, MaxResources), "")
	require.NotEmpty(t, faults)
	for _, fault := range faults {
		assert.NotEqual(t, field.ErrorTypeTooMany, fault.Type, fault)
	}
}

func TestOnlyWhatIsNotReadYetIsUnread(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "k")
	g, err := NewGraph(&Schema{}, ring)
	require.NoError(t, err)
	r := &Resource{ID: "r"}
	g.sources[sourceKey{resource: r}] = sourceState{Source: SourceSynced}
	n := &node{key: Key{Name: "a"}, resource: r}
	g.put(n, nil, &Hold{Reason: Unsynced})
	assert.Equal(t, []Key{n.key}, g.UnreadConfig())
	g.put(n, nil, &Hold{Reason: Forbidden})
	assert.Empty(t, g.UnreadConfig())

	g.put(n, &facts{}, nil)
	_, changed := g.evaluate(n, nil)
	assert.True(t, changed, "the first evaluation is a change")
	g.round++
	_, changed = g.evaluate(n, nil)
	assert.True(t, changed, "the first round has none before it")
	_, changed = g.evaluate(n, nil)
	assert.False(t, changed, "nothing has changed")

	next, err := g.NewEmpty(ring)
	require.NoError(t, err)
	assert.Equal(t, g.sources, next.sources)
	_, err = g.NewEmpty(digest.Ring{})
	require.ErrorIs(t, err, digest.ErrNoKey)
}

// A chain is cut off where it is held anyway; what comes after it is shown.
func TestTextOfAPictureEnds(t *testing.T) {
	t.Parallel()
	leaf := Key{Resource: "r", Name: "leaf"}
	var p Picture
	for _, root := range []string{"x", "y"} {
		at := func(i int) Key { return Key{Resource: "r", Name: fmt.Sprintf("%s%d", root, i)} }
		p.Roots = append(p.Roots, at(0))
		p.Edges = append(p.Edges, PictureEdge{From: at(0), To: leaf})
		for i := range MaxDepth + 3 {
			p.Edges = append(p.Edges, PictureEdge{From: at(i), To: at(i + 1)})
		}
	}
	text := p.Text()
	for _, root := range []string{"x", "y"} {
		assert.Contains(t, text, fmt.Sprintf("r/%s%d  [missing] …\n", root, MaxDepth+2), text)
		assert.NotContains(t, text, fmt.Sprintf("r/%s%d ", root, MaxDepth+3))
	}
	assert.Equal(t, 2, strings.Count(text, "leaf  [missing]\n"), "nothing is below it that is shown above: %s", text)
	last := MaxDepth + 2
	p.Edges = []PictureEdge{}
	for i := range last {
		p.Edges = append(p.Edges, PictureEdge{From: Key{Name: fmt.Sprint(i)}, To: Key{Name: fmt.Sprint(i + 1)}})
	}
	p.Roots = []Key{{Name: "0"}}
	assert.NotContains(t, p.Text(), "…", "the last one has nothing below it")
}
