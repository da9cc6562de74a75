package annotation

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// nameList is a comma-separated list of names, as far as a workload can track them: a list of 256 KiB costs the memory of
// 1,000 names. All strings in it are copies: they live on in indexes and caches, which must not keep the annotation.
type nameList struct {
	// names are the possible ones, sorted and without repetitions.
	names []string
	// written are the items in the order written; of a list with more than a workload can track, they are the names.
	written []string
	// asked says that there is an item, possible or not.
	asked   bool
	dropped int
	wrong   invalidNames
	syntax  syntax
}

// syntax is what the items of a list can be.
type syntax struct {
	// is reports whether an item is possible, and why says what is wrong with one that is not.
	is  func(item string) bool
	why func(item string) error
}

// names is the syntax of a list of names.
func names() syntax { return syntax{reference.IsName, reference.ValidName} }

// readList reads a list. Of a long one it keeps the first names in their order, and those that the pods require.
func readList(value string, of syntax, required func() map[string]bool) nameList {
	l := nameList{syntax: of}
	if !longerThan(value, reference.MaxTracked) {
		for item := range items(value) {
			item = strings.Clone(item)
			l.written = append(l.written, item)
			if l.valid(len(l.written), item) {
				l.names = append(l.names, item)
			}
		}
		l.asked, l.names = len(l.written) > 0, distinct(l.names)
		return l
	}
	first := firstNames{needed: required()}
	position := 0
	for item := range items(value) {
		position++
		if l.valid(position, item) {
			first.add(item)
		}
	}
	l.asked, l.names, l.dropped = true, first.all(), first.dropped
	l.written = l.names
	return l
}

// valid reports whether a name is possible, and takes an impossible one in as a Problem.
func (l *nameList) valid(position int, name string) bool {
	if l.syntax.is(name) {
		return true
	}
	l.wrong.add(position, name, l.syntax.why)
	return false
}

// items yields the items of a comma-separated list, trimmed, without the empty ones.
func items(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" && !yield(item) {
				return
			}
		}
	}
}

// longerThan reports whether a list has more than so many items.
func longerThan(value string, most int) bool {
	n := 0
	for range items(value) {
		if n++; n > most {
			return true
		}
	}
	return false
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// firstNames keeps the first of many names in their order, as many as a workload can track, in little memory.
type firstNames struct {
	// needed are names to keep whatever their place, and kept those that were there.
	needed  map[string]bool
	kept    []string
	first   []string
	dropped int
	// last is the greatest of the first names, once there are enough; a name behind it is dropped.
	last string
}

func (f *firstNames) add(name string) {
	switch {
	case f.needed[name]:
		delete(f.needed, name)
		f.kept = append(f.kept, name)
	case f.last != "" && name > f.last:
		f.dropped++
	default:
		if f.first = append(f.first, name); len(f.first) == 2*reference.MaxTracked {
			f.cut()
		}
	}
}

func (f *firstNames) cut() {
	f.first = distinct(f.first)
	if excess := len(f.first) - reference.MaxTracked; excess > 0 {
		f.dropped += excess
		f.first = f.first[:reference.MaxTracked]
		f.last = f.first[reference.MaxTracked-1]
	}
}

// all returns copies of the names, sorted.
func (f *firstNames) all() []string {
	f.cut()
	names := distinct(append(f.first, f.kept...))
	for i, name := range names {
		names[i] = strings.Clone(name)
	}
	return names
}

// correctName is what to do about an impossible name.
const correctName = "correct the name or remove it"

// maxInvalid is how many impossible names of one list are reported one by one.
const maxInvalid = 5

// invalidNames gathers the impossible items of one list.
type invalidNames struct {
	names, found []string
	more         int
}

// add takes in an item that is repeated no more than once. why says what is wrong with it.
func (n *invalidNames) add(position int, item string, why func(string) error) {
	switch {
	case slices.Contains(n.names, item):
	case len(n.names) == maxInvalid:
		n.more++
	default:
		n.names = append(n.names, item)
		n.found = append(n.found, fmt.Sprintf("item %d is not tracked: %v", position, why(item)))
	}
}

// problems returns one Problem for each of the first names, with what to do about it, and one that counts the others.
func (n *invalidNames) problems(key, advice string) []Problem {
	problems := make([]Problem, 0, len(n.found)+1)
	for _, text := range n.found {
		problems = append(problems, Problem{Message: fmt.Sprintf(
			"annotation %q: %s: %s", key, text, advice)})
	}
	if n.more > 0 {
		problems = append(problems, Problem{Message: fmt.Sprintf(
			"annotation %q: %s wrong: correct or remove %s", key, reference.CountAre(n.more, "more item"), n.pronoun())})
	}
	return problems
}

// pronoun stands for the items that are counted.
func (n *invalidNames) pronoun() string {
	if n.more == 1 {
		return "it"
	}
	return "them"
}
