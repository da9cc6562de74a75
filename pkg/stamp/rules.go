package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Rule is the name of the rule that a request fits; logs and metrics bear it.
type Rule string

// The rules, in the order in which they are tried. The numbers are those of the design. A stale dummy (3) is no rule of
// its own: it is purged whatever follows.
const (
	RuleExcluded           Rule = "excluded"            // 1
	RuleCreate             Rule = "create"              // 2
	RuleVerifiedReload     Rule = "verified-reload"     // 4
	RuleSecondPass         Rule = "second-pass"         // 4a
	RuleTemplateChanged    Rule = "template-changed"    // 5
	RuleListsEdited        Rule = "lists-edited"        // 5
	RuleAnnotationsMissing Rule = "annotations-missing" // 6
	RuleAnnotationsEdited  Rule = "annotations-edited"  // 6
	RuleAdopt              Rule = "adopt"               // 7
	RuleNothing            Rule = "nothing"             // 8
)

// rule is one row of the table that has the order.
type rule struct {
	name Rule
	// fits needs no live state.
	fits func(Write) bool
	// reads returns what must be read before apply.
	reads func(Write) []reference.Ref
	// apply decides, or returns false to go on with the rules below. It finds the managed annotations from before the
	// write in the draft: what no rule changes is restored.
	apply func(*draft) bool
}

func rules() []rule {
	return []rule{
		{RuleExcluded, excluded, readsOfExcluded, decideExcluded},
		{RuleCreate, created, Write.tracked, stampNew},
		{RuleVerifiedReload, newDummy, Write.tracked, verify},
		{RuleSecondPass, secondPass, Write.tracked, decideAgain},
		{RuleTemplateChanged, templateChanged, Write.tracked, stampRelease},
		{RuleListsEdited, listsEdited, Write.tracked, stampLists},
		{RuleAnnotationsMissing, annotationsMissing, readsOfAdoption, restore},
		{RuleAnnotationsEdited, annotationsEdited, Write.tracked, keepOrRestore},
		{RuleAdopt, somethingUnknown, Write.tracked, adopt},
		{RuleNothing, always, nothing, done},
	}
}

func always(Write) bool { return true }

func nothing(Write) []reference.Ref { return nil }

func done(*draft) bool { return true }

// created (rule 2) fits the first write of a workload.
func created(req Write) bool { return req.Create }

// stampNew stamps a new workload. Managed annotations that came along from elsewhere (get -o yaml | create, a restore)
// count for nothing. What a strategy of Reloader has written stays: it restarts nothing here.
func stampNew(d *draft) bool {
	d.Managed = d.New.Managed.only(Fields)
	if d.ReadError == nil {
		d.stamp(d.Managed.only(Fields), nil)
		d.warnMissing()
	}
	return true
}

// Plan is the first step of a decision: the rule that fits, and what must be read before it can be applied.
type Plan struct {
	Rule  Rule
	Reads []reference.Ref
}

// undecided reports whether a rule needs a state of which it is not known what must be read.
func (p Plan) undecided(req Write) bool {
	if p.Rule == RuleExcluded {
		return req.unresolved() && !req.Create && req.replacesPods()
	}
	return req.unresolved() && p.Rule != RuleAnnotationsMissing && p.Rule != RuleNothing
}

// Choose returns the first rule that fits a request. It needs no live state.
func Choose(req Write) Plan {
	all := rules()
	r := all[slices.IndexFunc(all, func(r rule) bool { return r.fits(req) })] // the last one always does
	return Plan{Rule: r.name, Reads: r.reads(req)}
}

// Apply returns the decision for the live state that the Plan asked for. It never errs: where the state could not be
// read, the write passes with the managed annotations that need no read, and a warning.
func (p Plan) Apply(req Write, inputs Inputs) Result {
	d := newDraft(p, req, inputs)
	reached := false
	for _, r := range rules() {
		reached = reached || r.name == p.Rule
		if reached && r.fits(req) && r.apply(d) {
			break
		}
	}
	return d.result()
}
