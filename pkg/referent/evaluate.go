package referent

import "slices"

// Change is a node whose digest, Entry or Hold is another one than before.
type Change struct {
	Key Key
	// Held says that the node is held now.
	Held bool
	// Causes are the objects because of which the digest has changed: the first MaxCauses, sorted. A node that is held has none
	// yet.
	Causes []Key
}

// Evaluation is what Evaluate did.
type Evaluation struct {
	// Evaluated is how many nodes were evaluated.
	Evaluated int
	// Changes are sorted by key.
	Changes []Change
}

// Evaluate evaluates the nodes that have changed and those above them, each once, children first. The result does not
// depend on the order in which anything was set.
func (g *Graph) Evaluate() Evaluation {
	var done Evaluation
	// Removing nodes can bring a namespace below its bound.
	for len(g.dirty) > 0 || len(g.gone) > 0 {
		g.round++
		dirty := g.dirty
		g.dirty = nil
		w := walk{judge: &g.judge, index: map[*node]int{}}
		slices.SortFunc(dirty, (*node).compare)
		for _, n := range dirty {
			w.visit(n)
		}
		done.Evaluated += len(dirty)
		done.Changes = append(done.Changes, w.changes...)
		g.sweep()
	}
	done.Changes = lastOfEach(done.Changes)
	return done
}

// lastOfEach sorts changes by key, and keeps the last one of a node that was evaluated twice.
func lastOfEach(changes []Change) []Change {
	slices.Reverse(changes)
	slices.SortStableFunc(changes, func(a, b Change) int { return a.Key.Compare(b.Key) })
	return slices.CompactFunc(changes, func(a, b Change) bool { return a.Key == b.Key })
}

// walk visits dirty nodes depth first, and evaluates each strongly connected component after those below it: the algorithm
// of Tarjan, without recursion, as a chain of objects can be as long as users make it.
type walk struct {
	judge   *judge
	index   map[*node]int // in the order of first visits, from 1
	low     map[*node]int
	stack   []*node // visited, component not complete
	frames  []frame
	changes []Change
}

// frame is a node on the way down.
type frame struct {
	node     *node
	children []*node // all
	next     int     // the child to visit
}

func (w *walk) visit(root *node) {
	if !root.dirty { // it was below another one
		return
	}
	w.enter(root)
	for len(w.frames) > 0 {
		top := &w.frames[len(w.frames)-1]
		if top.next < len(top.children) {
			child := top.children[top.next]
			top.next++
			w.descend(top.node, child)
			continue
		}
		w.leave(*top)
	}
}

func (w *walk) enter(n *node) {
	if w.low == nil {
		w.low = map[*node]int{}
	}
	w.index[n] = len(w.index) + 1
	w.low[n] = w.index[n]
	w.stack = append(w.stack, n)
	n.visited = true
	w.frames = append(w.frames, frame{node: n, children: w.judge.visible(n)})
}

// descend goes down to a child that must be evaluated. visited says that its component is not complete.
func (w *walk) descend(from, child *node) {
	switch {
	case !child.dirty:
	case w.index[child] == 0:
		w.enter(child)
	case child.visited:
		w.low[from] = min(w.low[from], w.index[child])
	}
}

func (w *walk) leave(f frame) {
	n := f.node
	w.frames = w.frames[:len(w.frames)-1]
	if len(w.frames) > 0 {
		parent := w.frames[len(w.frames)-1].node
		w.low[parent] = min(w.low[parent], w.low[n])
	}
	if w.low[n] < w.index[n] {
		return
	}
	at := len(w.stack) - 1
	for w.stack[at] != n {
		at--
	}
	component := slices.Clone(w.stack[at:])
	w.stack = w.stack[:at]
	for _, member := range component {
		member.visited = false
	}
	cycle := cycleOf(component, f.children)
	for _, member := range component {
		if change, changed := w.judge.evaluate(member, cycle); changed {
			w.changes = append(w.changes, change)
		}
	}
}

// cycleOf is the shortest path in a component from its first node by key back to itself; nil for a node that does not
// refer to itself. It is the same for every order of visits.
func cycleOf(component, children []*node) []Key {
	if len(component) == 1 && !slices.Contains(children, component[0]) {
		return nil
	}
	within := make(map[*node]bool, len(component))
	for _, n := range component {
		within[n] = true
	}
	start := slices.MinFunc(component, (*node).compare)
	return start.pathTo(start, func(n *node) bool { return within[n] })
}
