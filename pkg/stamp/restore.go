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
	return annotationsEdited(req) && len(req.edit().edited()) == 0
}

// annotationsEdited (rule 6) fits a write that changes managed annotations.
func annotationsEdited(req Write) bool {
	return !req.edit().keeps(Hash, Restart, Record, LastReload, Fields)
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
	if last, byLoop := d.restartByLoop(); byLoop {
		d.recordRestart(last)
		return true
	}
	return d.keepFirstStamp() || d.ReadError != nil || keepLive(d)
}

// keepLive is keepOrRestore where the live state is known.
func keepLive(d *draft) bool {
	verdict := d.live.assess(d.Old.Known()).Verdict
	if keepReloaders(d, verdict) {
		return true
	}
	written := d.edit()
	switch {
	case !written.keepsStamp():
		if verdict.Action == policy.Reload && d.live.proves(written.now[Hash]) {
			d.reload(d.Old.Managed, verdict.Changes, record.CauseConfigChange)
			d.keepExplanation()
			return true
		}
	case d.reloadedWithoutStamp():
		if rec, err := d.live.record(d.Managed[Hash], true); err == nil {
			d.putRecord(rec)
			d.Managed.put(d.New.Managed, LastReload)
			return true
		}
	case keepNotified(d, verdict):
		return true
	case written.keeps(LastReload):
		if seen := d.withAppeared(verdict.Adopt); written.recordsLive(seen, verdict.Adopt) {
			d.live = seen
			d.adoptAll()
			return true
		}
	}
	if !d.fromFirstPass(verdict) {
		d.warn(restoredText(written.edited()))
	}
	return restore(d)
}

// keepNotified keeps what the loop has recorded of changes that it has reported instead of reloading.
func keepNotified(d *draft, verdict policy.Verdict) bool {
	if verdict.Action != policy.Reload || !d.NotifyOnly || !d.edit().keeps(LastReload) || !d.edit().recordsLive(d.live, d.live.Refs) {
		return false
	}
	rec, err := policy.RecordNotified(d.live.beside(d.Old.Known()), d.Managed[Hash])
	if err != nil {
		return false
	}
	d.putRecord(rec)
	return true
}

// keepReloaders keeps what Stakater's Reloader has written, where that is a reload of what is due, or of what nothing is known yet.
func keepReloaders(d *draft, verdict policy.Verdict) bool {
	refs := verdict.Adopt
	if verdict.Action == policy.Reload {
		refs, _ = d.live.changed(verdict.Changes)
	}
	switch set := d.edit().setByReloader(refs); {
	case set == nil || verdict.Action == policy.Hold:
		return false
	case verdict.Action == policy.Reload:
		d.byReloader = set
		d.reload(d.New.Managed.only(stampKeys()...), verdict.Changes, record.CauseConfigChange)
	default:
		d.Managed.put(d.New.Managed, Fields)
		d.adoptAll() // the pods start with the live state
	}
	return true
}

// reloadedWithoutStamp reports whether the write reports a reload that needs no stamp, such as a Job made again: it
// adopts the live state of all, and explains why.
func (f *facts) reloadedWithoutStamp() bool {
	last, explained := f.edit().explained()
	return explained && f.Old.mayExplain(last, f.now) && f.edit().recordsLive(f.live, f.live.Refs)
}

// recordsLive reports whether the write's Record belongs to the template and has the live Entry of each of some Refs.
func (e edit) recordsLive(l live, refs []reference.Ref) bool {
	rec, belongs := e.now.recordOf(e.old[Hash])
	return belongs && l.isIn(rec, refs)
}

// fromFirstPass reports whether the write's annotations are those of our own first pass, which has adopted objects, has left out what is not
// tracked any more, or has stamped a template that another webhook has changed back since.
func (f *facts) fromFirstPass(verdict policy.Verdict) bool {
	written := f.edit()
	if !written.keepsStamp() {
		rec, stamped := written.stampWithoutChange()
		return stamped && f.live.isIn(rec, slices.Collect(maps.Keys(rec.Items(f.live.Refs))))
	}
	return written.keeps(LastReload) && (written.recordsLive(f.live, f.adoptable(verdict)) || written.recordsOnly(f.live.Refs))
}

// recordsOnly reports whether the write's Record is the old one, reduced to what is tracked. A first pass that finds the
// same contents has their present versions.
func (e edit) recordsOnly(tracked []reference.Ref) bool {
	rec, belongs := e.now.recordOf(e.old[Hash])
	old, err := record.Parse(e.old[Record])
	return belongs && err == nil && rec.SameContents(old.Only(tracked))
}

// consequenceUndone says what an undo across a reload leaves as it is.
const consequenceUndone = "after rollout undo, change the ConfigMaps and Secrets instead: it does not roll them back"

// restoredText explains restored managed annotations to a user who changed them on purpose, or by an undo, which brings those of an earlier
// template: a manifest with copies of them looks the same. A write that merely lacks them comes under annotationsMissing, and means nothing.
func restoredText(edited []string) string {
	text := fmt.Sprintf("pod-reloader manages these annotations and has restored them: %s; if a manifest has them, remove them there",
		strings.Join(edited, ", "))
	if slices.ContainsFunc(edited, func(name string) bool { return name != string(Record) && name != string(LastReload) }) {
		text += "; " + consequenceUndone
	}
	return text
}
