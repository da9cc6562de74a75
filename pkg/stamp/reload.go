package stamp

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func created(req Request) bool { return req.Create }

// stampNew stamps a new workload. Marks that came along from elsewhere (get -o yaml | create, a restore) say nothing here.
func stampNew(req Request, live Live) (Result, error) {
	fresh, err := req.freshMarks(live)
	return Result{Marks: fresh, Stamped: true, Warnings: missing(req, live)}, err
}

func newDummy(req Request) bool {
	_, ok := req.dummy()
	return ok
}

// verify lets a reload pass if its digest is that of the state read here, and rejects it otherwise.
func verify(req Request, live Live) (Result, error) {
	given, _ := req.dummy()
	expected, right, err := req.proves(live, given)
	switch {
	case err != nil:
		return unverifiable(err), nil
	case !right:
		return conflict(given, expected, req.New.Intent.Refs()), nil
	}
	fresh, err := req.freshMarks(live)
	if err != nil {
		return Result{}, err
	}
	verdict := req.compare(live)
	current := req.isCurrent(verdict, live) || len(verdict.Changes) == 0 && fresh[Hash] == req.Old.Marks[Hash]
	if current && !req.TemplateChanged {
		return restore(req, live)
	}
	cause := record.CauseVerifiedReload
	if len(verdict.Changes) > 0 {
		cause = record.CauseConfigChange
	}
	result := req.reloaded(live, fresh, verdict.Changes, cause)
	result.Warnings = missingFromLists(req, live)
	return result, nil
}

// unverifiable keeps a verified reload from passing without a proof.
func unverifiable(err error) Result {
	return Result{Reject: &Rejection{
		Code:    CodeUnverified,
		Message: fmt.Sprintf("the digest cannot be verified: %v; try again", err),
	}}
}

func conflict(given, expected string, refs []reference.Ref) Result {
	return Result{Reject: &Rejection{Code: CodeConflict, Message: fmt.Sprintf(
		"the configuration is not the one that the digest %s was made from: it is %s now, over %s; read it again and retry",
		reference.Quote(given), expected, describe(refs))}}
}

func templateChanged(req Request) bool { return req.TemplateChanged }

// stampRollout stamps a workload that rolls out anyway, so that the rollout brings the current configuration.
func stampRollout(req Request, live Live) (Result, error) {
	if result, ok := req.stampedBefore(live); ok {
		return result, nil
	}
	fresh, err := req.freshMarks(live)
	if err != nil {
		return Result{}, err
	}
	changes := req.changes(live)
	result := Result{Marks: fresh, Stamped: true}
	if len(changes) > 0 {
		result = req.reloaded(live, fresh, changes, record.CauseRelease)
	} else if last, ok := req.Old.Marks[LastReload]; ok && fresh[Hash] == req.Old.Marks[Hash] {
		fresh[LastReload] = last
	}
	result.Warnings = missingFromLists(req, live)
	return result, nil
}

func listsEdited(req Request) bool { return !req.New.Intent.SameLists(req.Old.Intent) }

// stampLists stamps a workload whose list of config objects was edited: SAP's dialect restarts it at once. Where the
// tracked content is the recorded one (a list that was taken away and came back), there is nothing to restart for.
func stampLists(req Request, live Live) (Result, error) {
	if result, ok := req.stampedBefore(live); ok {
		return result, nil
	}
	verdict := req.compare(live)
	if req.isCurrent(verdict, live) {
		return Result{Marks: req.Old.Marks.Without(Dummy), Warnings: missing(req, live)}, nil
	}
	fresh, err := req.freshMarks(live)
	if err != nil {
		return Result{}, err
	}
	result := req.reloaded(live, fresh, verdict.Changes, record.CauseListEdit)
	result.Warnings = missing(req, live)
	return result, nil
}

// secondPass is the time within which the API server calls a webhook again for the same request: no webhook can take
// longer than 30 seconds.
const secondPass = 30 * time.Second

// stampedBefore recognises the second pass over a write that another webhook touched after our first one: what the first
// one wrote, and how it explained it, stands.
func (r Request) stampedBefore(live Live) (Result, bool) {
	last, err := record.ParseLastReload(r.New.Marks[LastReload])
	if err != nil || r.New.Marks.same(r.Old.Marks, LastReload) || !r.stamped() || !r.stampIsLive(live) {
		return Result{}, false
	}
	if age := live.Now.Sub(last.Time); age < -secondPass || age > secondPass {
		return Result{}, false
	}
	return Result{
		Marks: r.New.Marks.Without(Dummy, Baseline), Stamped: true, Changes: r.changes(live), Warnings: missingFromLists(r, live),
	}, true
}

// reloaded returns the stamp of a restart that was asked for or is due, with its explanation.
func (r Request) reloaded(live Live, fresh Marks, changes []policy.Change, cause string) Result {
	if !r.TemplateChanged && fresh[Record] == r.Old.Marks[Record] && fresh[Hash] == r.Old.Marks[Hash] {
		fresh = touch(fresh, r.Old.Generation)
	}
	fresh[LastReload] = r.explain(live, fresh[Hash], changes, cause)
	return Result{Marks: fresh, Stamped: true, Changes: changes}
}

// touch changes the text of a Record but not its meaning, for a restart that is due though the content is the recorded
// one: A was stamped, B adopted without a restart, A came back. A folded Record cannot be touched: it goes, and what is
// there is adopted.
func touch(fresh Marks, generation int64) Marks {
	rec, err := record.Parse(fresh[Record])
	if err != nil || len(rec.Items) == 0 {
		return fresh.Without(Record)
	}
	first := firstOf(rec.Items)
	item := rec.Items[first]
	item.Hint = "g" + strconv.FormatInt(generation, 10)
	rec.Items[first] = item
	touched := fresh.Without()
	touched[Record] = rec.String()
	return touched
}

func firstOf(items map[reference.Ref]record.Item) reference.Ref {
	var first reference.Ref
	for ref := range items {
		if first == (reference.Ref{}) || ref.Compare(first) < 0 {
			first = ref
		}
	}
	return first
}
