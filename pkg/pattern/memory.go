package pattern

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// mostMemory is how many bytes the patterns of one namespace may take. Without a limit, some hundred workloads with long lists, which cost
// their owner a few kilobytes each, would take the memory of the workloads of all namespaces.
const mostMemory = 16 << 20

// What is kept takes about so many bytes, as measured with heaps of 10,000 patterns: a pair of a pattern and a workload, a pattern without
// a regular expression, and besides each unit of the cost of one that has it.
const (
	pairMemory = 80
	globMemory = 300
	unitMemory = 100
)

// memory estimates how many bytes a pattern takes.
func (p *Pattern) memory() int {
	if p.whole == nil {
		return globMemory
	}
	return globMemory + unitMemory*p.cost
}

// everything stands for the patterns of a workload that are not kept. No expression of a list is empty.
var everything = &Pattern{rest: glob{{}}}

// within returns the patterns that fit into some bytes of memory, in their order, and everything of their kind for those that do not.
func within(patterns []Use, memory int, cost func(Use) int) []Use {
	kept := make([]Use, 0, len(patterns))
	var excess []reference.Kind
	for _, u := range patterns {
		if more := cost(u); u.Pattern != everything && more <= memory {
			memory -= more
			kept = append(kept, u)
		} else if !slices.Contains(excess, u.Kind) {
			excess = append(excess, u.Kind)
		}
	}
	for _, kind := range excess {
		kept = append(kept, Use{kind, everything})
	}
	return kept
}

// cost returns how many bytes it counts to give a pattern to a workload that has some already.
func (n *namespaceIndex[K]) cost(u Use, kept []held[K]) int {
	if _, has := search(kept, u.use()); has {
		return 0
	}
	return n.table(u.Kind).cost(u.Pattern)
}
