package stamp

import (
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// excluded (rule 1) fits workloads that a label excludes or that ask for nothing, and updates of kinds whose template
// cannot change. One whose annotations could not be resolved does not count as excluded.
func excluded(req Write) bool {
	return req.New.Excluded || len(req.New.Intent.Tracked) == 0 && !req.unresolved() || req.Immutable && !req.Create
}

// unresolved reports whether it is not known what the workload tracks, and its Record does not name anything either: it is
// compact, or there is none.
func (r Write) unresolved() bool { return r.New.Unresolved != nil && len(r.New.Intent.Tracked) == 0 }

// readsOfExcluded reads for a rollout only: what its pods start with is recorded, so that the end of the exclusion is
// compared with that.
func readsOfExcluded(req Write) []reference.Ref {
	if req.replacesPods() {
		return req.tracked()
	}
	return nil
}

// replacesPods reports whether a write replaces the pods whatever becomes of our stamp: it changes the template, or what a strategy of
// Reloader writes there.
func (r Write) replacesPods() bool { return r.TemplateChanged || r.edit().setsFields() }

// decideExcluded restarts nothing: the template keeps its hash. Where the write changes the template otherwise, the hash
// that it bears stays, so that a rollback finds its pods. A manifest without our annotations does not remove it: the pods of an
// earlier release that still run have it.
func decideExcluded(d *draft) bool {
	if d.Create {
		d.Managed = d.New.Managed.only(Fields)
		if d.New.Controlled {
			// A Job of a CronJob, say: its template is its controller's.
			d.Managed = d.New.Managed.only(stampKeys()...)
		}
		return true
	}
	if d.cleans() {
		d.Managed = d.edit().kept()
		return true
	}
	switch {
	case d.New.Controlled && (d.TemplateChanged && !d.New.Intent.Asked || d.inherits()):
		d.Managed.put(d.New.Managed, stampKeys()...) // its template is its controller's
	case d.TemplateChanged:
		d.Managed.put(d.edit().templateAnnotations(), stampKeys()...)
	case d.edit().setsFields():
		d.Managed.put(d.New.Managed, Fields) // by Stakater's Reloader, which may handle what this program leaves alone, or by hand
	}
	d.recordExcluded()
	if d.edit().bringsDummy() {
		d.warn("pod-reloader removed this reload request: the workload is excluded, or no annotation names an object")
	}
	return true
}

// inherits reports whether a workload that asks for nothing has its stamp from its controller, as the StatefulSet that an operator
// makes from the pod template of a custom kind: a reload of the custom resource must arrive there. A controller that writes no
// stamp removes none.
func (r Write) inherits() bool {
	_, hashed := r.New.Managed[Hash]
	return len(r.New.Intent.Tracked) == 0 && (hashed || r.New.Managed[Fields] != "")
}

// cleans reports whether the write asks that what it takes away stays away: pod-reloader clean does. Without the request,
// a write that lacks managed annotations is one of a user who does not know of them.
func (r Write) cleans() bool {
	given, asked := r.dummy()
	return asked && r.New.Ignored && given.bound && given.digest == digest.Clean
}

// recordExcluded keeps what is known of pods that stay, and takes the live state as known for pods that start now.
// Without intent nothing is known: opting in later starts from what is there then. Where annotations ask for reloads, but nothing is
// tracked, a flag may hide the objects for a time.
func (d *draft) recordExcluded() {
	_, hashed := d.Managed[Hash]
	_, recorded := d.Managed[Record]
	nothingKnown := record.New(d.Managed[Hash], "", nil)
	switch {
	case len(d.live.Refs) == 0 && !hashed && !recorded:
	case d.unresolved() && !d.replacesPods():
	case d.hidesAll():
	case len(d.live.Refs) == 0:
		d.putRecord(nothingKnown)
	case !d.replacesPods():
		if d.EndsRestart {
			delete(d.Managed, Record) // of the pods that are left, the hash has the content
		}
	default:
		rec, err := d.live.record(d.Managed[Hash], true)
		if d.ReadError != nil || err != nil {
			rec = nothingKnown
		}
		d.putRecord(rec)
	}
}

// hidesAll reports whether annotations ask for reloads although nothing is tracked, and the write keeps the pods that the Record is of.
func (d *draft) hidesAll() bool {
	_, belongs := d.Managed.recordOf(d.Managed[Hash])
	return belongs && d.New.Intent.Asked && len(d.live.Refs) == 0 && !d.replacesPods() && !d.Restarts
}
