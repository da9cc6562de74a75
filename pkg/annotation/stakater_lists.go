package annotation

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// excluded returns the possible names of an exclude list, sorted. Unlike the names of other lists they are parts of the
// annotation: a Selection with them does not outlive the reading of its workload.
func (r *stakaterReading) excluded(key string) []string {
	value, ok := r.source.Workload[key]
	if !ok {
		return nil
	}
	var names []string
	var wrong invalidNames
	position, most := 0, 2*reference.MaxTracked
	for item := range items(value) {
		position++
		if !reference.IsName(item) {
			wrong.add(position, item, reference.ValidName)
			continue
		}
		if names = append(names, item); len(names) == most {
			names = distinct(names)
			most = 2 * max(len(names), reference.MaxTracked)
		}
	}
	r.addProblems(wrong.problems(key, "this list has names, not expressions; correct or remove it")...)
	return distinct(names)
}

// maxExpressions bounds what the expressions of one list cost together, in the unit of pattern.Pattern.Cost: the compiled ones
// take some 400 kB.
const maxExpressions = 10_000

// stepCost is what an expression costs besides for each step of pattern.Pattern.Steps: to match a name of 253 characters with all
// expressions of a list takes a quarter of a millisecond at most.
const stepCost = 100

// minExpression is what an expression is charged at least, so that invalid ones cannot be compiled without end.
const minExpression = 20

// namedList is one reading of a list of names and expressions.
type namedList struct {
	*stakaterReading
	selection *Selection
	names     firstNames
	// seen are the expressions that were compiled, budget is what is left for others.
	seen   map[string]bool
	budget int
	wrong  invalidNames
}

// named adds a list of names and expressions to a Selection, and reports whether there is anything in it. Of more names than a
// workload can track it keeps the first in their order, and those that the pods require.
func (r *stakaterReading) named(s *Selection, key, value string) bool {
	l := namedList{stakaterReading: r, selection: s, budget: maxExpressions}
	if longerThan(value, reference.MaxTracked) {
		l.names.needed = required(r.source.References, s.Kind)
	}
	position, dotted := 0, false
	for item := range items(value) {
		position++
		dotted = l.add(position, item) || dotted
	}
	if dotted {
		l.dottedNames(value)
	}
	s.Listed = l.names.all()
	r.intent.Dropped += l.names.dropped
	r.addProblems(l.wrong.problems(key, "correct or remove it")...)
	return position > 0
}

// add takes in one name, or one expression that is no name. It reports whether the item is both: a name with a dot.
func (l *namedList) add(position int, item string) (dotted bool) {
	name, literal := reference.IsName(item), pattern.IsName(item)
	switch {
	case name && !l.selection.excludes(item):
		l.names.add(item)
	case name:
	case literal:
		l.wrong.add(position, item, reference.ValidName)
	case l.budget < minExpression && !l.seen[item]:
		l.wrong.add(position, item, overBudget)
	default:
		l.expression(position, item)
	}
	return name && !literal
}

// dottedNames takes in the names with a dot as expressions, while the other expressions have left a budget: they are tracked as names
// anyway, also while there is no such object.
func (l *namedList) dottedNames(value string) {
	position := 0
	for item := range items(value) {
		position++
		if l.budget < minExpression {
			return
		}
		if reference.IsName(item) && !pattern.IsName(item) {
			l.expression(position, item)
		}
	}
}

func (l *namedList) expression(position int, text string) {
	if l.seen[text] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[text] = true
	p, err := l.Patterns.Compile(text)
	if err != nil {
		l.budget -= max(minExpression, pattern.CostOf(err))
		l.wrong.add(position, text, func(string) error { return err })
		return
	}
	l.budget -= max(p.Cost(), stepCost*p.Steps())
	l.selection.Patterns = append(l.selection.Patterns, p)
}

func overBudget(text string) error {
	return fmt.Errorf("the list has reached its limit of expressions before %s", reference.Quote(text))
}
