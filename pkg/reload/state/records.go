package state

import "github.com/pod-reloader/pod-reloader/pkg/workload"

// Records has the Records of Jobs that pod-reloader has no permission to write. A process that does not know them any more takes what is
// there by then as what the pods started with.
type Records struct{ perWorkload[unwrittenRecord] }

// unwrittenRecord is what the Job with a UID would have as its Record, in place of the stored one.
type unwrittenRecord struct{ uid, stored, text string }

// Keep keeps the Record of a Job in place of the stored one.
func (r *Records) Keep(key workload.Key, uid, stored, text string) {
	r.with(key, func(e *unwrittenRecord) { *e = unwrittenRecord{uid, stored, text} })
}

// InPlaceOf returns the Record that is kept of a Job in place of the stored one, if there is one. Nil keeps none.
func (r *Records) InPlaceOf(key workload.Key, uid, stored string) (text string, kept bool) {
	if r == nil {
		return "", false
	}
	r.find(key, func(e *unwrittenRecord) {
		if e.uid == uid && e.stored == stored {
			text, kept = e.text, true
		}
	})
	return text, kept
}
