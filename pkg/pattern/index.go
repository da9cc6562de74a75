package pattern

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Index knows which workloads, by their keys, have a pattern that matches a config object. It matches each pattern once
// against each name, however many workloads share it and however often the object changes: an event of a known object
// costs one look at a bit per pattern of its namespace. Where a namespace has no patterns for a kind, nothing is kept.
//
// It is safe for concurrent use, and no call waits for long: a namespace whose patterns take long to match has a goroutine for that, and
// knows nothing of them until it is done. Patterns that do not fit into the memory for a namespace are not kept: each change of an object of
// their kind may concern their workloads. A nil Index takes in nothing and has nothing.
type Index[K comparable] struct {
	names func(namespace string, kind reference.Kind) []string
	// memory is how many bytes the patterns of one namespace may take, as estimated by Pattern.memory and pairMemory.
	memory int
	// turn is held while a goroutine does what takes long: however many namespaces have slow patterns, they take one processor.
	turn chan struct{}

	mu         sync.Mutex
	namespaces map[string]*namespaceIndex[K]
}

// namespaceIndex is what an Index knows of one namespace.
type namespaceIndex[K comparable] struct {
	// callers counts those that use it now. Index.mu guards it; without callers, that guards the rest, too.
	callers int

	mu sync.RWMutex
	// names returns those that exist of a kind.
	names func(reference.Kind) []string
	// busy is set while a goroutine works off the backlog. Then the rest is that goroutine's.
	busy    bool
	backlog backlog[K]
	tables  map[reference.Kind]*table[K]
	// memory is how many bytes are left for patterns.
	memory int
	// byKey has the patterns of a workload that are kept, sorted by their uses.
	byKey map[K][]held[K]
}

// use is a pattern that a workload has for one kind of config objects.
type use struct {
	kind reference.Kind
	text string
}

func (u use) compare(other use) int {
	return cmp.Or(strings.Compare(string(u.kind), string(other.kind)), strings.Compare(u.text, other.text))
}

// in reports whether it is one of some sorted uses.
func (u use) in(uses []use) bool {
	_, found := slices.BinarySearchFunc(uses, u, use.compare)
	return found
}

// held is a pattern that a workload has, and that is kept.
type held[K comparable] struct {
	kind reference.Kind
	row  *row[K]
	// at is where the row has the workload.
	at int
}

func (h held[K]) use() use { return use{h.kind, h.row.pattern.text} }

// search returns where a use is among some sorted ones, or would be.
func search[K comparable](sorted []held[K], u use) (at int, found bool) {
	return slices.BinarySearchFunc(sorted, u, func(h held[K], u use) int { return h.use().compare(u) })
}

// Use is a pattern for names of one kind.
type Use struct {
	Kind    reference.Kind
	Pattern *Pattern
}

func (u Use) use() use { return use{u.Kind, u.Pattern.text} }

// NewIndex returns an empty index. names returns the names of the config objects that exist, when the first pattern of a
// namespace arrives; from then on Put and Remove must be called for every change that names does not show.
func NewIndex[K comparable](names func(namespace string, kind reference.Kind) []string) *Index[K] {
	return &Index[K]{names: names, memory: mostMemory, turn: make(chan struct{}, 1), namespaces: map[string]*namespaceIndex[K]{}}
}

// enter returns what is known of a namespace, for one caller of leave. Where nothing is known, it is new if create says so, else nil.
func (x *Index[K]) enter(namespace string, create bool) *namespaceIndex[K] {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.namespaces[namespace]
	if n == nil && create {
		n = &namespaceIndex[K]{
			names:  func(kind reference.Kind) []string { return x.names(namespace, kind) },
			tables: map[reference.Kind]*table[K]{}, byKey: map[K][]held[K]{}, memory: x.memory, backlog: backlog[K]{memory: x.memory, next: batch[K]{memory: x.memory}},
		}
		x.namespaces[namespace] = n
	}
	if n != nil {
		n.callers++
	}
	return n
}

// leave forgets a namespace without patterns.
func (x *Index[K]) leave(namespace string, n *namespaceIndex[K]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n.callers--; n.callers == 0 && len(n.byKey) == 0 {
		delete(x.namespaces, namespace)
	}
}

// Set replaces the patterns that a workload has for the config objects of its namespace. A key is that of one namespace.
func (x *Index[K]) Set(key K, namespace string, patterns []Use) {
	if x == nil {
		return
	}
	n := x.enter(namespace, len(patterns) > 0)
	if n == nil {
		return
	}
	defer x.leave(namespace, n)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy || n.effort(key, patterns) > quick {
		n.backlog.next.set(key, patterns)
		x.begin(namespace, n)
		return
	}
	n.set(key, patterns)
}

// Delete forgets a workload.
func (x *Index[K]) Delete(key K, namespace string) { x.Set(key, namespace, nil) }

// Put takes in that a config object exists, and returns the workloads with a pattern that matches its name, each once. Where it takes
// long to find them it returns none, and another goroutine calls later with them, unless that is nil. Events of one object that wait for
// that are one.
func (x *Index[K]) Put(namespace string, ref reference.Ref, later func([]K)) []K {
	return x.change(namespace, ref, objectChange[K]{exists: true, later: later})
}

// Remove takes in that a config object is gone, and finds the workloads with a pattern that matches its name as Put does.
func (x *Index[K]) Remove(namespace string, ref reference.Ref, later func([]K)) []K {
	return x.change(namespace, ref, objectChange[K]{exists: false, later: later})
}

// change changes the table of a config object, if there is one.
func (x *Index[K]) change(namespace string, ref reference.Ref, what objectChange[K]) []K {
	if x == nil {
		return nil
	}
	n := x.enter(namespace, false)
	if n == nil {
		return nil
	}
	defer x.leave(namespace, n)
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.tables[ref.Kind]; !n.busy && (t == nil || !what.exists && !t.has(ref.Name)) {
		return nil
	}
	if n.busy || n.effortOf(ref) > quick {
		n.backlog.next.change(ref, what)
		x.begin(namespace, n)
		return nil
	}
	return n.changed(ref, what.exists)
}

// begin has the backlog of a namespace worked off, if that has not begun. The caller holds its lock.
func (x *Index[K]) begin(namespace string, n *namespaceIndex[K]) {
	if n.busy {
		return
	}
	n.busy = true
	x.mu.Lock()
	n.callers++
	x.mu.Unlock()
	go func() {
		defer x.leave(namespace, n)
		n.process(x.turn)
	}()
}

// Names returns the names of the config objects that one of some patterns matches, sorted, each once: a workload may have hundreds of
// patterns, each of which matches thousands of names. The patterns about which nothing is known are unknown: those that no workload of
// the namespace has, and all while the namespace is not done with what takes long.
func (x *Index[K]) Names(namespace string, kind reference.Kind, patterns []*Pattern) (names []string, unknown []*Pattern) {
	n := x.enter(namespace, false)
	if n == nil {
		return nil, patterns
	}
	defer x.leave(namespace, n)
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.busy || n.tables[kind] == nil {
		return nil, patterns
	}
	t := n.tables[kind]
	var matches bitset
	for _, p := range patterns {
		if r := t.byText[p.text]; r != nil {
			matches.add(r.matches)
		} else {
			unknown = append(unknown, p)
		}
	}
	return t.namesOf(matches), unknown
}

// Full reports whether a namespace has patterns for a kind that are not kept.
func (x *Index[K]) Full(namespace string, kind reference.Kind) bool {
	n := x.enter(namespace, false)
	if n == nil {
		return false
	}
	defer x.leave(namespace, n)
	n.mu.RLock()
	defer n.mu.RUnlock()
	return !n.busy && n.tables[kind] != nil && n.tables[kind].byText[everything.text] != nil
}

// set replaces the patterns of a workload.
func (n *namespaceIndex[K]) set(key K, patterns []Use) {
	patterns = slices.Clone(patterns)
	slices.SortFunc(patterns, func(a, b Use) int { return a.use().compare(b.use()) })
	patterns = slices.CompactFunc(patterns, func(a, b Use) bool { return a.use() == b.use() })
	asked := make([]use, 0, len(patterns))
	for _, p := range patterns {
		asked = append(asked, p.use())
	}
	kept := n.drop(n.byKey[key], asked) // what goes gives its memory to what comes
	fitting := within(patterns, n.memory, func(u Use) int { return n.cost(u, kept) })
	after := make([]held[K], 0, len(fitting))
	for _, p := range fitting {
		if at, has := search(kept, p.use()); has {
			after = append(after, kept[at])
		} else {
			after = append(after, n.add(key, p))
		}
	}
	n.sweep()
	slices.SortFunc(after, func(a, b held[K]) int { return a.use().compare(b.use()) })
	n.byKey[key] = after
	if len(after) == 0 {
		delete(n.byKey, key)
	}
}

// effort returns how many steps it can take to match the new ones of some patterns, and to take the others from a workload. It need not
// count further than what is quick.
func (n *namespaceIndex[K]) effort(key K, patterns []Use) int {
	sum := n.effortOfDrops(key, patterns)
	for _, p := range patterns {
		if t := n.table(p.Kind); t.byText[p.Pattern.text] == nil {
			sum += t.effortOf(p.Pattern)
		}
		if sum > quick {
			break
		}
	}
	return sum
}

// effortOfDrops returns how many steps it can take to take those from a workload that are not among some patterns.
func (n *namespaceIndex[K]) effortOfDrops(key K, patterns []Use) int {
	before, kept := n.byKey[key], map[use]bool{}
	for _, p := range patterns {
		if _, has := search(before, p.use()); has {
			kept[p.use()] = true
		}
	}
	if len(kept) == len(before) {
		return 0
	}
	sum, swept := 0, map[reference.Kind]bool{}
	for _, h := range before {
		if kept[h.use()] {
			continue
		}
		sum++
		if len(h.row.keys) == 1 && !swept[h.kind] {
			swept[h.kind] = true
			sum += bit * len(n.tables[h.kind].rows)
		}
	}
	return sum
}

// effortOf returns how many steps it can take to match the name of a config object with all patterns.
func (n *namespaceIndex[K]) effortOf(ref reference.Ref) int {
	if t := n.tables[ref.Kind]; t != nil {
		return t.effort(ref.Name)
	}
	return 0
}

// changed takes in what became of a config object, and returns the workloads with a pattern that matches its name.
func (n *namespaceIndex[K]) changed(ref reference.Ref, exists bool) []K {
	t := n.tables[ref.Kind]
	if t == nil {
		return nil
	}
	slot := t.put(ref.Name)
	keys := t.users(slot)
	if !exists {
		t.remove(slot)
	}
	return keys
}

// table returns the table of a kind, and fills a new one with the names that exist.
func (n *namespaceIndex[K]) table(kind reference.Kind) *table[K] {
	t := n.tables[kind]
	if t == nil {
		t = &table[K]{byText: map[string]*row[K]{}}
		t.fill(n.names(kind))
		n.tables[kind] = t
	}
	return t
}

// add gives a workload a pattern that it does not have.
func (n *namespaceIndex[K]) add(key K, p Use) held[K] {
	r, cost := n.table(p.Kind).add(key, p.Pattern)
	n.memory -= cost
	return held[K]{p.Kind, r, len(r.keys) - 1}
}

// drop takes the patterns from a workload that it has no more, and returns those that remain. Both are sorted.
func (n *namespaceIndex[K]) drop(before []held[K], asked []use) (kept []held[K]) {
	for _, h := range before {
		if h.use().in(asked) {
			kept = append(kept, h)
			continue
		}
		n.memory += n.tables[h.kind].drop(h)
		if h.at < len(h.row.keys) { // another workload has its place
			others := n.byKey[h.row.keys[h.at]]
			at, _ := search(others, h.use())
			others[at].at = h.at
		}
	}
	return kept
}

// sweep removes the rows that no workload has, and the tables without rows.
func (n *namespaceIndex[K]) sweep() {
	for kind, t := range n.tables {
		if t.sweep() {
			delete(n.tables, kind)
		}
	}
}
