package stamp

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// marksForgotten fits a write that merely lacks marks, as a PUT of a manifest that knows nothing of them does.
func marksForgotten(req Request) bool {
	if !marksEdited(req) {
		return false
	}
	for slot, value := range req.New.Marks.Without(Dummy) {
		if before, ok := req.Old.Marks[slot]; !ok || before != value {
			return false
		}
	}
	return true
}

// marksEdited fits a write that changes marks.
func marksEdited(req Request) bool {
	for _, s := range slots {
		if s.slot != Dummy && !req.New.Marks.same(req.Old.Marks, s.slot) {
			return true
		}
	}
	return false
}

// restore puts the marks back that stood before.
func restore(req Request, _ Live) (Result, error) {
	return Result{Marks: req.Old.Marks.Without(Dummy)}, nil
}

// standOrRestore judges marks that somebody wrote: they stand if the live state calls for them (a second pass after
// another webhook, a direct write of the loop, an adoption of the loop), otherwise those from before come back.
func standOrRestore(req Request, live Live) (Result, error) {
	verdict := req.compare(live)
	switch {
	case req.stamped() && !req.isCurrent(verdict, live) && req.stampIsLive(live):
		return Result{Marks: req.New.Marks.Without(Dummy, Baseline), Stamped: true, Changes: verdict.Changes}, nil
	case !req.stamped() && req.New.Marks.same(req.Old.Marks, LastReload) && req.baselineIsTrue(verdict, live):
		return Result{Marks: req.New.Marks.Without(Dummy)}, nil
	}
	return Result{Marks: req.Old.Marks.Without(Dummy), Warnings: req.restored()}, nil
}

// isCurrent tells whether the old Record is that of the live state, and no Change is due: nothing then calls for a stamp.
func (r Request) isCurrent(verdict policy.Verdict, live Live) bool {
	return len(verdict.Changes) == 0 && r.recordIsLive(r.Old.Marks[Record], live)
}

// stampIsLive tells whether the marks on the template are those of the live state, and the explanation that came along
// is theirs.
func (r Request) stampIsLive(live Live) bool {
	marks := r.New.Marks
	if _, right, err := r.proves(live, marks[Hash]); err != nil || !right || !r.recordIsLive(marks[Record], live) {
		return false
	}
	rec, err := record.Parse(marks[Record])
	if err != nil {
		return false
	}
	for ref, item := range rec.Items {
		if !honestHint(item.Hint, live.States[ref].ResourceVersion) {
			return false
		}
	}
	text, present := marks[LastReload]
	if !present || marks.same(r.Old.Marks, LastReload) {
		return true
	}
	last, err := record.ParseLastReload(text)
	return err == nil && last.Hash == marks[Hash]
}

// baselineIsTrue tells whether a Baseline says of each Ref what was known before, or the live state where that hides no
// Change.
func (r Request) baselineIsTrue(verdict policy.Verdict, live Live) bool {
	next, base := r.New.Marks.known()
	before := r.Old.Marks.Known()
	if base == nil {
		return false
	}
	if before.Fold != nil || next.Fold != nil {
		return len(verdict.Changes) == 0 && r.saysLive(next, live)
	}
	for _, ref := range named(r.New.Intent.Tracked, next.Items, before.Items) {
		if !r.itemIsTrue(ref, judgement{next, before, base, verdict}, live) {
			return false
		}
	}
	return true
}

// judgement is what the items of a Baseline are judged by.
type judgement struct {
	next, before record.Known
	base         *record.Baseline
	verdict      policy.Verdict
}

// itemIsTrue judges what a Baseline says of one Ref.
func (r Request) itemIsTrue(ref reference.Ref, by judgement, live Live) bool {
	item, isKnown := by.next.Items[ref]
	was, wasKnown := by.before.Items[ref]
	if isKnown == wasKnown && item == was {
		return true
	}
	if _, tracked := r.New.Intent.Tracked[ref]; !tracked {
		_, written := by.base.Items[ref]
		return !written && !canBeCompared(was, live.Ring)
	}
	_, adopted := slices.BinarySearchFunc(by.verdict.Adopt, ref, reference.Ref.Compare)
	hides := !adopted && !itemIsLive(was, live.States[ref])
	return isKnown && !hides && honest(item, live.States[ref])
}

// canBeCompared tells whether an item can still be compared with what is there. One that cannot, of an object that is not
// tracked any more, may go.
func canBeCompared(item record.Item, ring digest.Ring) bool {
	_, owned := ring.Key(item.Key)
	return owned || item.Absent()
}

// saysLive tells whether a known state is the live one of all that is tracked.
func (r Request) saysLive(known record.Known, live Live) bool {
	refs := r.New.Intent.Refs()
	if known.Fold != nil {
		return foldIsLive(known.Fold, refs, live)
	}
	for _, ref := range refs {
		if item, ok := known.Items[ref]; !ok || !honest(item, live.States[ref]) {
			return false
		}
	}
	return true
}

// honest tells whether an item is that of the live state, with a hint that can do no harm.
func honest(item record.Item, state digest.State) bool {
	return itemIsLive(item, state) && honestHint(item.Hint, state.ResourceVersion)
}

// named returns all Refs that are tracked or known on one side.
func named[T any](tracked map[reference.Ref]T, known ...map[reference.Ref]record.Item) []reference.Ref {
	var refs []reference.Ref
	for ref := range tracked {
		refs = append(refs, ref)
	}
	for _, items := range known {
		for ref := range items {
			refs = append(refs, ref)
		}
	}
	return refs
}

// restored explains restored marks to who meant something by them. A mark that is merely missing means nothing.
func (r Request) restored() []string {
	if r.undone() {
		return []string{"pod-reloader: configuration is not rolled back by rollout undo: the pods keep the current ConfigMaps and Secrets; change those instead"}
	}
	var edited []string
	for _, s := range slots {
		_, present := r.New.Marks[s.slot]
		if s.slot != Dummy && present && !r.New.Marks.same(r.Old.Marks, s.slot) {
			edited = append(edited, string(s.slot))
		}
	}
	if len(edited) == 0 {
		return nil
	}
	return []string{"pod-reloader maintains these annotations itself and has put back what they said before: " + strings.Join(edited, ", ")}
}

// undone tells whether the marks look like those of an earlier template.
func (r Request) undone() bool {
	_, err := record.Parse(r.New.Marks[Record])
	return err == nil && !r.New.Marks.same(r.Old.Marks, Record) && !r.New.Marks.same(r.Old.Marks, Hash) && r.New.Marks[Hash] != ""
}
