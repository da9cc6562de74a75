package pattern

import (
	"math/bits"
	"slices"
	"strings"
)

// table has the patterns and the names of one kind in one namespace, and a bit for each pair that matches: 500 patterns and
// 5,000 names take some 300 kB.
type table[K comparable] struct {
	// slots numbers the names. names has them by number; the numbers of free are not in use.
	slots map[string]int
	names []string
	free  []int
	// sorted has the numbers in use in the order of their names, for patterns with a prefix.
	sorted []int
	// rows are in the order in which the patterns came, so that the order of answers does not depend on a map.
	rows   []*row[K]
	byText map[string]*row[K]
	// unused counts the rows that no workload has.
	unused int
	// steps is how many steps the patterns take for each character of a name, at most.
	steps int
}

// row is one pattern with the workloads that have it.
type row[K comparable] struct {
	pattern *Pattern
	keys    []K
	matches bitset
	// memory is how many bytes were counted for it.
	memory int
}

func (t *table[K]) has(name string) bool {
	_, known := t.slots[name]
	return known
}

// bit is how many steps it counts to look at the bit of a name in a row.
const bit = 2

// effort returns how many steps it takes to put or remove a name and to find its users, at most.
func (t *table[K]) effort(name string) int {
	if t.has(name) {
		return bit * len(t.rows)
	}
	return len(name)*t.steps + (look+bit)*len(t.rows)
}

// effortOf returns how many steps it takes to match a pattern with every name, at most. It counts no further than what is quick.
func (t *table[K]) effortOf(p *Pattern) int {
	sum := 0
	for _, slot := range t.after(p.prefix) {
		if sum += p.effort(t.names[slot]); sum > quick || !strings.HasPrefix(t.names[slot], p.prefix) {
			break
		}
	}
	return sum
}

// after returns the numbers of the names from a text on, in their order.
func (t *table[K]) after(text string) []int {
	first, _ := t.find(text)
	return t.sorted[first:]
}

// put numbers a name, and matches it with every pattern if it is new.
func (t *table[K]) put(name string) int {
	if slot, known := t.slots[name]; known {
		return slot
	}
	slot := len(t.names)
	if last := len(t.free) - 1; last >= 0 {
		slot, t.free = t.free[last], t.free[:last]
		t.names[slot] = name
	} else {
		t.names = append(t.names, name)
	}
	t.slots[name] = slot
	at, _ := t.find(name)
	t.sorted = slices.Insert(t.sorted, at, slot)
	for _, r := range t.rows {
		if r.pattern.Match(name) {
			r.matches.set(slot)
		}
	}
	return slot
}

// fill puts the names into an empty table without patterns.
func (t *table[K]) fill(names []string) {
	t.slots, t.names, t.sorted = make(map[string]int, len(names)), make([]string, 0, len(names)), make([]int, 0, len(names))
	for _, name := range names {
		if _, known := t.slots[name]; !known {
			t.slots[name] = len(t.names)
			t.sorted = append(t.sorted, len(t.names))
			t.names = append(t.names, name)
		}
	}
	slices.SortFunc(t.sorted, func(a, b int) int { return strings.Compare(t.names[a], t.names[b]) })
}

// find returns where a name is among the sorted ones, or would be.
func (t *table[K]) find(name string) (at int, known bool) {
	return slices.BinarySearchFunc(t.sorted, name, func(slot int, name string) int { return strings.Compare(t.names[slot], name) })
}

func (t *table[K]) remove(slot int) {
	for _, r := range t.rows {
		r.matches.clear(slot)
	}
	if at, known := t.find(t.names[slot]); known {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
	delete(t.slots, t.names[slot])
	t.names[slot] = ""
	t.free = append(t.free, slot)
}

// cost returns how many bytes it counts to add a pattern to a workload.
func (t *table[K]) cost(p *Pattern) int {
	switch {
	case p == everything:
		return 0
	case t.byText[p.text] != nil:
		return pairMemory
	default:
		return pairMemory + p.memory() + len(t.names)/8
	}
}

// add gives a pattern to a workload, matches it with every name if it is new, and returns its row and its cost. The row has the workload
// last.
func (t *table[K]) add(key K, p *Pattern) (r *row[K], cost int) {
	cost = t.cost(p)
	r = t.byText[p.text]
	if r == nil {
		r = &row[K]{pattern: p, memory: max(0, cost-pairMemory)}
		for _, slot := range t.after(p.prefix) {
			if !strings.HasPrefix(t.names[slot], p.prefix) {
				break
			}
			if p.Match(t.names[slot]) {
				r.matches.set(slot)
			}
		}
		t.rows = append(t.rows, r)
		t.byText[p.text] = r
		t.steps += p.steps
	}
	r.keys = append(r.keys, key)
	return r, cost
}

// drop takes a pattern from a workload, and returns what no longer counts. The last workload of the row takes its place. A row that no
// workload has any more remains until the next sweep.
func (t *table[K]) drop(h held[K]) (memory int) {
	r, last := h.row, len(h.row.keys)-1
	r.keys[h.at] = r.keys[last]
	clear(r.keys[last:])
	r.keys = r.keys[:last]
	if r.pattern != everything {
		memory = pairMemory
	}
	if last == 0 {
		delete(t.byText, r.pattern.text)
		t.unused++
		t.steps -= r.pattern.steps
		memory += r.memory
	}
	return memory
}

// sweep removes the rows that no workload has, and reports whether none is left. They go all at once, since a workload has hundreds of
// patterns and a namespace can have ten thousands.
func (t *table[K]) sweep() (empty bool) {
	if t.unused > 0 {
		t.rows, t.unused = slices.DeleteFunc(t.rows, func(r *row[K]) bool { return len(r.keys) == 0 }), 0
	}
	return len(t.rows) == 0
}

// users returns the workloads with a pattern that matches a name, each once.
func (t *table[K]) users(slot int) []K {
	var keys []K
	var seen map[K]bool
	for _, r := range t.rows {
		if !r.matches.has(slot) {
			continue
		}
		if keys == nil {
			keys = slices.Clone(r.keys)
			continue
		}
		if seen == nil {
			seen = make(map[K]bool, len(keys))
			for _, key := range keys {
				seen[key] = true
			}
		}
		for _, key := range r.keys {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// namesOf returns the names with some numbers, sorted.
func (t *table[K]) namesOf(matches bitset) []string {
	var names []string
	for slot := range matches.all {
		names = append(names, t.names[slot])
	}
	slices.Sort(names)
	return names
}

// bitset is a set of small numbers.
type bitset []uint64

func (b *bitset) set(n int) {
	if missing := n/64 + 1 - len(*b); missing > 0 {
		*b = append(*b, make(bitset, missing)...)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// add puts the numbers of another set into the set.
func (b *bitset) add(other bitset) {
	if missing := len(other) - len(*b); missing > 0 {
		*b = append(*b, make(bitset, missing)...)
	}
	for i, word := range other {
		(*b)[i] |= word
	}
}

func (b bitset) clear(n int) {
	if n/64 < len(b) {
		b[n/64] &^= 1 << (n % 64)
	}
}

func (b bitset) has(n int) bool { return n/64 < len(b) && b[n/64]&(1<<(n%64)) != 0 }

// all calls yield for every number in the set, in order.
func (b bitset) all(yield func(int) bool) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(i*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}
