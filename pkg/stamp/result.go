package stamp

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Result is the decision about a request.
type Result struct {
	Rule Rule
	// Marks are those that must stand on the workload as it is stored.
	Marks Marks
	// Reject is set if the request must not pass.
	Reject *Rejection
	// Warnings are for the user who wrote.
	Warnings []string
	// Changes are those that the stamp brings to the pods.
	Changes []policy.Change
	// Stamped tells that the marks of the template are new.
	Stamped bool
}

// The HTTP statuses of a Rejection: the digest does not match, or it cannot be verified now.
const (
	CodeConflict   int32 = 409
	CodeUnverified int32 = 503
)

// Rejection is an answer that keeps a write from passing.
type Rejection struct {
	// Code is CodeConflict or CodeUnverified.
	Code    int32
	Message string
}

// Apply returns the decision for the live state that the Plan asked for. It never errs: where the state could not be
// read, or marks cannot be made, the write passes with the marks it had, and a warning tells.
func (p Plan) Apply(req Request, live Live) Result {
	result, err := p.decide(req, live)
	if err != nil {
		result = Result{Marks: req.Old.Marks.Without(Dummy), Warnings: []string{fmt.Sprintf(
			"pod-reloader left the config-hash as it was: %s; it looks again by itself", bounded(err.Error()))}}
	}
	result.Rule = p.Rule
	if result.Reject != nil {
		return result
	}
	result.Warnings = append(result.Warnings, foldWarnings(req, result.Marks)...)
	result.Marks = req.fit(result.Marks)
	return result
}

func (p Plan) decide(req Request, live Live) (Result, error) {
	switch {
	case live.Err == nil:
		return p.apply(req, live)
	case p.Rule == RuleVerifiedReload:
		return unverifiable(live.Err), nil
	default:
		return Result{}, live.Err
	}
}

// foldWarnings tells the user that marks which are new name no causes any more.
func foldWarnings(req Request, marks Marks) []string {
	rec, _ := record.Parse(marks[Record])
	base, _ := record.ParseBaseline(marks[Baseline])
	folded := rec.Fold != nil && !marks.same(req.Old.Marks, Record) || base.Fold != nil && !marks.same(req.Old.Marks, Baseline)
	if !folded {
		return nil
	}
	return []string{fmt.Sprintf("pod-reloader: the annotations have no room to name %d config objects one by one: "+
		"changes are still seen, but not which object changed; name fewer, or shorten other annotations", len(req.New.Intent.Tracked))}
}

// fit drops what would make the object invalid, the least important first. What is dropped from the workload costs an
// explanation or is adopted again; nothing goes from a template that stays as it is, since its annotations had room.
func (r Request) fit(marks Marks) Marks {
	room := r.New.WorkloadRoom
	if len(marks[Baseline])+len(marks[LastReload]) > room && !r.unchanged(marks, LastReload) {
		marks = marks.Without(LastReload)
	}
	if len(marks[Baseline])+len(marks[LastReload]) > room && !r.unchanged(marks, Baseline) {
		marks = marks.Without(Baseline)
	}
	brought := !r.unchanged(marks, Hash) || !r.unchanged(marks, Record)
	if r.TemplateChanged && brought && len(marks[Hash])+len(marks[Record]) > r.New.TemplateRoom {
		marks = marks.Without(Hash, Record)
	}
	return marks
}

// unchanged tells whether the write itself has a mark as it is to stand.
func (r Request) unchanged(marks Marks, slot Slot) bool {
	return marks.same(r.New.Marks, slot)
}
