package stamp

import (
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// marksForgotten (rule 6) fits a write that merely lacks marks, as a PUT of a manifest that knows nothing of them does.
func marksForgotten(req Request) bool {
	return marksEdited(req) && len(req.edited()) == 0
}

// marksEdited (rule 6) fits a write that changes marks.
func marksEdited(req Request) bool {
	return !req.New.Marks.same(req.Old.Marks, Hash, Restart, Record, LastReload)
}

// edited returns the marks that the write has and that are not the old ones.
func (r Request) edited() []string {
	var edited []string
	for _, s := range slots {
		_, present := r.New.Marks[s.slot]
		if s.slot != Dummy && present && !r.New.Marks.same(r.Old.Marks, s.slot) {
			edited = append(edited, string(s.slot))
		}
	}
	return edited
}

// readsOfAdoption reads where something is left to adopt.
func readsOfAdoption(req Request) []reference.Ref {
	if somethingUnknown(req) {
		return req.tracked()
	}
	return nil
}

// restore puts the marks back that were there before, and goes on to rule 7.
func restore(d *draft) bool {
	d.adoptCurrent()
	return true
}

// standOrRestore judges marks that were written by hand, by an undo, or by the loop: they stand if the policy calls for
// them and they are the live ones. An equal digest alone is not enough: it would restart pods without cause.
func standOrRestore(d *draft) bool {
	if d.unread != nil {
		return true
	}
	verdict := d.assess(d.Old.Marks.Known()).Verdict
	switch {
	case !d.New.Marks.sameStamp(d.Old.Marks):
		if verdict.Action == policy.Reload && d.proves(d.New.Marks[Hash]) {
			d.reload(d.Old.Marks, verdict.Changes, record.CauseConfigChange)
			d.keepExplanation()
			return true
		}
	case d.reloadedWithoutStamp():
		rec, err := policy.Fresh(d.input(policy.Known{}), d.Marks[Hash], true)
		if err == nil {
			d.putRecord(d.Marks, rec)
			d.Marks.put(d.New.Marks, LastReload)
			return true
		}
	case d.New.Marks.same(d.Old.Marks, LastReload) && d.recordsLive(verdict.Adopt):
		d.adoptAll()
		return true
	}
	d.warnRestored()
	return restore(d)
}

// reloadedWithoutStamp reports whether the write reports a reload that needs no stamp, such as a Job made anew: it adopts
// the live state of all, and explains why.
func (d *draft) reloadedWithoutStamp() bool {
	last, ok := d.explained()
	return ok && d.recent(last) && d.recordsLive(d.refs)
}

// recordsLive reports whether the write's Record belongs to the template and has the live Entry of each of some Refs.
func (d *draft) recordsLive(refs []reference.Ref) bool {
	rec, err := record.Parse(d.New.Marks[Record])
	if err != nil || !rec.BelongsTo(d.Old.Marks[Hash]) {
		return false
	}
	items := rec.Items(refs)
	for _, ref := range refs {
		live, ok := record.ItemOf(rec.Key, d.live.States[ref])
		if item, recorded := items[ref]; !ok || !recorded || item.Entry != live.Entry {
			return false
		}
	}
	return len(refs) > 0
}

// warnRestored explains restored marks to a user who changed them on purpose. A mark that is merely missing means nothing.
func (d *draft) warnRestored() {
	edited := d.edited()
	_, hashed := d.New.Marks[Hash]
	switch {
	case hashed && !d.New.Marks.same(d.Old.Marks, Hash) && len(edited) > 1:
		d.warn("pod-reloader: configuration is not rolled back by rollout undo: the pods keep the current ConfigMaps and Secrets; change those instead")
	case len(edited) > 0:
		d.warn("pod-reloader manages these annotations and has restored them: %s", strings.Join(edited, ", "))
	}
}
