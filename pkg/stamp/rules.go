package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Rule is the name of the rule that decides a request; logs and metrics bear it.
type Rule string

// The rules, in the order in which they are tried. A stale dummy is no rule of its own: it is purged whatever follows.
const (
	RuleExcluded        Rule = "excluded"
	RuleCreate          Rule = "create"
	RuleVerifiedReload  Rule = "verified-reload"
	RuleTemplateChanged Rule = "template-changed"
	RuleListsEdited     Rule = "lists-edited"
	RuleMarksForgotten  Rule = "marks-forgotten"
	RuleMarksEdited     Rule = "marks-edited"
	RuleAdopt           Rule = "adopt"
	RuleNothing         Rule = "nothing"
)

// Plan is the first step of a decision: the rule that fits, and what must be read before it can be applied.
type Plan struct {
	Rule  Rule
	Reads []reference.Ref

	apply func(Request, Live) (Result, error)
}

// rule is one row of the table in which the order stands.
type rule struct {
	name  Rule
	fits  func(Request) bool
	reads func(Request) []reference.Ref
	apply func(Request, Live) (Result, error)
}

func rules() []rule {
	return []rule{
		{RuleExcluded, excluded, noRead, leaveAlone},
		{RuleCreate, created, tracked, stampNew},
		{RuleVerifiedReload, newDummy, tracked, verify},
		{RuleTemplateChanged, templateChanged, tracked, stampRollout},
		{RuleListsEdited, listsEdited, tracked, stampLists},
		{RuleMarksForgotten, marksForgotten, noRead, restore},
		{RuleMarksEdited, marksEdited, tracked, standOrRestore},
		{RuleAdopt, somethingUnknown, tracked, adopt},
		{RuleNothing, always, noRead, restore},
	}
}

// Choose returns the first rule that fits a request. It needs no live state.
func Choose(req Request) Plan {
	all := rules()
	r := all[slices.IndexFunc(all, func(r rule) bool { return r.fits(req) })] // the last one always does
	return Plan{Rule: r.name, Reads: r.reads(req), apply: r.apply}
}

func always(Request) bool { return true }

func noRead(Request) []reference.Ref { return nil }

// tracked reads all that is tracked.
func tracked(req Request) []reference.Ref { return req.New.Intent.Refs() }
