package stamp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// annotationsMissing (rule 6) fits a write that merely lacks managed annotations, as a PUT of a manifest that knows nothing
// of them does.
func annotationsMissing(req Write) bool {
	return annotationsEdited(req) && len(req.edited()) == 0
}

// annotationsEdited (rule 6) fits a write that changes managed annotations.
func annotationsEdited(req Write) bool {
	return !req.New.Managed.same(req.Old.Managed, Hash, Restart, Record, LastReload, Fields)
}

// edited returns the managed annotations that the write has and that are not the old ones, and likewise what a strategy
// of Reloader writes.
func (r Write) edited() []string {
	var edited []string
	for _, s := range managedKeys {
		_, present := r.New.Managed[s.key]
		same := r.New.Managed.same(r.Old.Managed, s.key) || s.key == LastReload && r.sameReload()
		if s.key != Dummy && present && !same {
			edited = append(edited, string(s.key))
		}
	}
	return append(edited, r.New.Managed.fields().Edited(r.Old.Managed.fields())...)
}

// readsOfAdoption reads where something is left to adopt.
func readsOfAdoption(req Write) []reference.Ref {
	if somethingUnknown(req) {
		return req.tracked()
	}
	return nil
}

// restore puts the managed annotations back that were there before, and goes on to rule 7.
func restore(d *draft) bool {
	return adopt(d)
}

// keepOrRestore judges managed annotations that were written by hand, by an undo, or by the loop: they are kept if the
// policy calls for them and they are the live ones. An equal digest alone is not enough: it would restart pods without
// cause.
func keepOrRestore(d *draft) bool {
	return d.recordsRestart() || d.keepFirstStamp() || d.ReadError != nil || keepLive(d)
}

// keepLive is keepOrRestore where the live state is known.
func keepLive(d *draft) bool {
	verdict := d.assess(d.Old.Known()).Verdict
	if keepReloaders(d, verdict) {
		return true
	}
	switch {
	case !d.New.Managed.sameStamp(d.Old.Managed):
		if verdict.Action == policy.Reload && d.proves(d.New.Managed[Hash]) {
			d.reload(d.Old.Managed, verdict.Changes, record.CauseConfigChange)
			d.keepExplanation()
			return true
		}
	case d.reloadedWithoutStamp():
		if rec, err := policy.NewRecord(d.input(policy.Known{}), d.Managed[Hash], true); err == nil {
			d.putRecord(d.Managed, rec)
			d.Managed.put(d.New.Managed, LastReload)
			return true
		}
	case keepNotified(d, verdict):
		return true
	case d.New.Managed.same(d.Old.Managed, LastReload) && d.recordsAppeared(verdict.Adopt):
		d.adoptAll()
		return true
	}
	if !d.fromFirstPass(verdict) {
		d.warnRestored()
	}
	return restore(d)
}

// keepNotified keeps what the loop has recorded of changes that are reported and not acted on.
func keepNotified(d *draft, verdict policy.Verdict) bool {
	if verdict.Action != policy.Reload || !d.notified() {
		return false
	}
	rec, err := policy.RecordNotified(d.input(d.Old.Known()), d.Managed[Hash])
	if err != nil {
		return false
	}
	d.putRecord(d.Managed, rec)
	return true
}

// keepReloaders keeps what Stakater's Reloader has written, where that is a reload of what is due, or of what nothing is known yet.
func keepReloaders(d *draft, verdict policy.Verdict) bool {
	switch {
	case verdict.Action == policy.Reload && d.fields.reloadedByReloader(verdict.Changes):
		d.reload(d.New.Managed.only(stampKeys()...), verdict.Changes, record.CauseConfigChange)
	case verdict.Action == policy.Nothing && d.fields.reloadedByReloader(anyChange(verdict.Adopt)):
		d.Managed.put(d.New.Managed, Fields)
		d.adoptAll() // the pods start with the live state
	default:
		return false
	}
	return true
}

// anyChange returns a Change for each of some Refs.
func anyChange(refs []reference.Ref) []policy.Change {
	changes := make([]policy.Change, 0, len(refs))
	for _, ref := range refs {
		changes = append(changes, policy.Change{Ref: ref, Type: policy.Modified})
	}
	return changes
}

// reloadedWithoutStamp reports whether the write reports a reload that needs no stamp, such as a Job made again: it
// adopts the live state of all, and explains why.
func (f *facts) reloadedWithoutStamp() bool {
	last, ok := f.explained()
	return ok && f.mayExplain(last) && f.recordsLive(f.refs)
}

// notified reports whether the write adopts a Change that the loop has reported instead of reloading.
func (f *facts) notified() bool {
	return f.inputs.NotifyOnly && f.New.Managed.same(f.Old.Managed, LastReload) && f.recordsLive(f.refs)
}

// recordsLive reports whether the write's Record belongs to the template and has the live Entry of each of some Refs.
func (f *facts) recordsLive(refs []reference.Ref) bool {
	rec, belongs := f.New.Managed.recordOf(f.Old.Managed[Hash])
	return belongs && f.areLive(rec, refs)
}

// areLive reports whether a Record has the live Entry of each of some Refs.
func (f *facts) areLive(rec record.Record, refs []reference.Ref) bool {
	items := rec.Items(refs)
	for _, ref := range refs {
		live, ok := record.ItemOf(rec.Key, f.inputs.States[ref])
		if item, recorded := items[ref]; !ok || !recorded || item.Entry != live.Entry {
			return false
		}
	}
	return len(refs) > 0
}

// fromFirstPass reports whether the write's annotations are those of our own first pass, which has adopted objects, has left out what is not
// tracked any more, or has stamped a template that another webhook has changed back since.
func (f *facts) fromFirstPass(verdict policy.Verdict) bool {
	if !f.New.Managed.sameStamp(f.Old.Managed) {
		rec, stamped := f.unexplainedStamp()
		return stamped && f.areLive(rec, slices.Collect(maps.Keys(rec.Items(f.refs))))
	}
	return f.New.Managed.same(f.Old.Managed, LastReload) && (f.recordsLive(f.adoptable(verdict)) || f.recordsFewer())
}

// recordsFewer reports whether the write's Record is the old one without the objects that the workload does not track any more. A first
// pass that finds the same contents has their present versions.
func (f *facts) recordsFewer() bool {
	rec, belongs := f.New.Managed.recordOf(f.Old.Managed[Hash])
	old, err := record.Parse(f.Old.Managed[Record])
	return belongs && err == nil && rec.SameContents(old.Only(f.refs))
}

// consequenceUndone says what an undo across a reload leaves as it is.
const consequenceUndone = "after rollout undo, change the ConfigMaps and Secrets instead: it does not roll them back"

// warnRestored explains restored managed annotations to a user who changed them on purpose, or by an undo, which brings those of an earlier
// template: a manifest with copies of them looks the same. A write that merely lacks them comes under annotationsMissing, and means nothing.
func (d *draft) warnRestored() {
	edited := d.edited()
	text := fmt.Sprintf("pod-reloader manages these annotations and has restored them: %s; if a manifest has them, remove them there",
		strings.Join(edited, ", "))
	if slices.ContainsFunc(edited, func(name string) bool { return name != string(Record) && name != string(LastReload) }) {
		text += "; " + consequenceUndone
	}
	d.Warnings = append(d.Warnings, text)
}
