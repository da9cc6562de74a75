// Package pattern matches names of config objects against regular expressions: a Pattern is one of them, a Cache compiles
// each once, an Index knows which patterns of a namespace match which of its objects.
//
// It is one of the pure packages, beside reference. The expressions come from annotations, so from every user who may write a
// workload: their length, the size that they compile to, and the steps that a match can take are bounded.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// maxText is how many bytes an expression can have: four names of the longest kind as alternatives.
const maxText = 1024

// maxCost is the most that one expression may cost: enough for a class that is repeated over a whole name.
const maxCost = 2000

// maxSteps is how many steps the match of one name can take: some 40 for each character of the longest one. What fixes the length
// of each part takes few; where each of many parts can be there or not, any of them can be the next at each character.
const maxSteps = 10_000

// baseCost is what the smallest expression takes in memory, in the unit of Cost.
const baseCost = 20

// Pattern is a regular expression that matches whole names. It is immutable.
type Pattern struct {
	text string
	cost int
	// prefix is what each name that it matches begins with. After it comes rest; whole is nil unless there is no such glob.
	prefix string
	rest   glob
	whole  *regexp.Regexp
	// steps is how many steps a match takes for each character, at most.
	steps int
}

// IsName reports whether a text has no metacharacters, so that it is no expression. A name with a dot is one.
func IsName(text string) bool { return regexp.QuoteMeta(text) == text }

// Compile reads an expression. The error says in a bounded sentence fragment what is wrong: its syntax, its length, its
// size, or that no object can have a name that it matches.
func Compile(text string) (*Pattern, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the expression %s is %d bytes long: the limit is %d", reference.Quote(text), len(text), maxText)
	}
	if p := simple(text); p != nil {
		return p, nil
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the expression %s is invalid: %w", reference.Quote(text), explained(err))
	}
	size := baseCost + cost(tree)
	if size > maxCost {
		return nil, fmt.Errorf("the expression %s repeats too much: write it shorter", reference.Quote(text))
	}
	if !canMatchName(tree) {
		return nil, fmt.Errorf("the expression %s matches no name that an object can have; a comma separates items", reference.Quote(text))
	}
	// A copy: the pattern lives on in caches, which must not keep the annotation.
	p := &Pattern{text: strings.Clone(text), cost: size}
	if p.prefix, p.rest = literalPrefix(tree); p.rest != nil {
		return p, nil
	}
	steps, ok := stepsWithin(tree, maxSteps)
	if !ok {
		return nil, &tooManySteps{reference.Quote(text), size}
	}
	p.steps = (steps + longestName - 1) / longestName
	if p.whole, err = regexp.Compile("^(?:" + text + ")$"); err != nil {
		return nil, fmt.Errorf("the expression %s is invalid: %w", reference.Quote(text), explained(err))
	}
	return p, nil
}

// tooManySteps is the error of an expression that had to be compiled to be refused.
type tooManySteps struct {
	quoted string
	cost   int
}

func (e *tooManySteps) Error() string {
	return "the expression " + e.quoted + " repeats too much: write it shorter"
}

// CostOf returns what it has cost to compile the expression that Compile has refused with an error, in the unit of Pattern.Cost; 0 where its
// text has sufficed.
func CostOf(refused error) int {
	if e, ok := errors.AsType[*tooManySteps](refused); ok {
		return e.cost
	}
	return 0
}

// simple returns the pattern of a name and ".*", which most expressions are; nil for all others. They need no parser.
func simple(text string) *Pattern {
	prefix, ok := strings.CutSuffix(text, ".*")
	if !ok || prefix == "" || strings.IndexFunc(prefix, func(r rune) bool { return r == '.' || !inName(r) }) >= 0 {
		return nil
	}
	text = strings.Clone(text)
	return &Pattern{text: text, cost: baseCost + len(text) + 1, prefix: text[:len(prefix)], rest: glob{{}}}
}

// explained drops the part of a syntax error that repeats what the user wrote.
func explained(err error) error {
	var failed *syntax.Error
	switch {
	case errors.As(err, &failed) && failed.Code == syntax.ErrMissingRepeatArgument: // * alone is a pattern for names of files
		return fmt.Errorf("%s; .* stands for any text", failed.Code)
	case errors.As(err, &failed):
		return errors.New(string(failed.Code))
	}
	return err
}

// String returns the expression as written.
func (p *Pattern) String() string { return p.text }

// Cost is about how many instructions the expression compiles to; each takes some 40 bytes of memory.
func (p *Pattern) Cost() int { return p.cost }

// Steps is how many steps a match takes for each character of a name, at most: some ten nanoseconds each. It is 0 where a match only
// looks for literals.
func (p *Pattern) Steps() int { return p.steps }

// look is how many steps it counts to look for literals in a name.
const look = 8

// effort is how many steps the match of a name takes, at most.
func (p *Pattern) effort(name string) int {
	switch {
	case !strings.HasPrefix(name, p.prefix):
		return 1
	case p.rest != nil:
		return look
	default:
		return len(name) * p.steps
	}
}

// Match reports whether the expression matches the whole name.
func (p *Pattern) Match(name string) bool {
	after, ok := strings.CutPrefix(name, p.prefix)
	switch {
	case !ok:
		return false
	case p.rest == nil:
		return p.whole.MatchString(name)
	default:
		return p.rest.match(after)
	}
}

// Budget bounds the matching for one reading of a workload, where an Index does not know the matches: users choose the expressions, and
// with thousands of names they can take seconds. The zero value is a full one. One goroutine uses it.
type Budget struct{ steps int }

// Matching returns the names that a pattern matches, in their order, or false where that would take longer than the budget allows: what
// is quick, for all calls together.
func (b *Budget) Matching(p *Pattern, names []string) (matching []string, ok bool) {
	for _, name := range names {
		if b.steps += p.effort(name); b.steps > quick {
			return nil, false
		}
		if p.Match(name) {
			matching = append(matching, name)
		}
	}
	return matching, true
}
