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
	if d.reloadedElsewhere() {
		d.Managed.put(d.New.Managed, Hash, Restart, Fields, Record, LastReload)
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
	d.removeRequest()
	return true
}

// removeRequest removes a request for a reload, unless it is for another installation.
func (d *draft) removeRequest() {
	switch {
	case d.requestedElsewhere():
		d.Managed.put(d.New.Managed, Dummy)
		d.warn("pod-reloader left this reload request to another installation: this one tracks no object of the workload")
	case d.edit().bringsDummy():
		d.warn("pod-reloader removed this reload request: the workload is excluded, or no annotation names an object")
	}
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
func (d *draft) recordExcluded() {
	switch {
	case d.unresolved() && !d.replacesPods():
	case len(d.live.Refs) == 0:
		d.recordElsewhere()
	case !d.replacesPods():
		if d.EndsRestart {
			delete(d.Managed, Record) // of the pods that are left, the hash has the content
		}
	default:
		rec, err := d.live.record(d.Managed[Hash], true)
		if d.ReadError != nil || err != nil {
			rec = record.New(d.Managed[Hash], "", nil) // nothing is known
		}
		d.putRecord(rec)
	}
}
