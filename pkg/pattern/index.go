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
	// byKey has the uses of a workload that are kept, sorted.
	byKey map[K][]use
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
			tables: map[reference.Kind]*table[K]{}, byKey: map[K][]use{}, memory: x.memory, backlog: backlog[K]{memory: x.memory, next: batch[K]{memory: x.memory}},
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
	before, after := n.byKey[key], make([]use, 0, len(patterns))
	for _, p := range patterns {
		after = append(after, p.use())
	}
	// Those that go give their memory to those that come.
	kept, swept := n.drop(key, before, after), n.kindsOf(before)
	fitting := within(patterns, n.memory, func(u Use) int { return n.cost(u, kept) })
	after = after[:0]
	for _, p := range fitting {
		if after = append(after, p.use()); !p.use().in(kept) {
			n.memory -= n.table(p.Kind).add(key, p.Pattern)
		}
	}
	n.sweep(swept)
	slices.SortFunc(after, use.compare)
	n.byKey[key] = slices.Clip(after)
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
		if u := p.use(); u.in(before) {
			kept[u] = true
		}
	}
	if len(kept) == len(before) {
		return 0
	}
	sum, swept := 0, map[reference.Kind]bool{}
	for _, u := range before {
		if kept[u] {
			continue
		}
		t := n.tables[u.kind]
		sum += t.effortOfDrop(u.text)
		if !swept[u.kind] {
			swept[u.kind] = true
			sum += bit * len(t.rows)
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

// drop takes the patterns from a workload that it has no more, and returns those that remain, sorted.
func (n *namespaceIndex[K]) drop(key K, before, after []use) (kept []use) {
	for _, u := range before {
		if u.in(after) {
			kept = append(kept, u)
		} else {
			n.memory += n.tables[u.kind].drop(key, u.text)
		}
	}
	return kept
}

// kindsOf returns the kinds of some sorted uses.
func (n *namespaceIndex[K]) kindsOf(uses []use) (kinds []reference.Kind) {
	for _, u := range uses {
		kinds = append(kinds, u.kind)
	}
	return slices.Compact(kinds)
}

// sweep removes the rows that no workload has from the tables of some kinds, and the tables without rows.
func (n *namespaceIndex[K]) sweep(kinds []reference.Kind) {
	for _, kind := range kinds {
		if t := n.tables[kind]; t.sweep() {
			delete(n.tables, kind)
		}
	}
}
