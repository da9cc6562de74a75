package stamp

import (
	"errors"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Result is the decision about a request.
type Result struct {
	// Rule is the first one that the request fits.
	Rule Rule
	// Marks are those that the workload must have as it is stored.
	Marks Marks
	// Reject is set if the request must not pass.
	Reject *Rejection
	// Warnings are for the user who wrote.
	Warnings []string
	// Changes are those that the stamp brings to the pods.
	Changes []policy.Change
	// Stamped says that the marks of the template are not those from before the write.
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

// result closes a decision.
func (d *draft) result() Result {
	if d.Reject != nil {
		return d.Result
	}
	d.keepNewer()
	d.warnStale()
	d.fit()
	return d.Result
}

// keepNewer keeps a stored Record that a newer version of this program has written: it is neither judged nor replaced. One
// that only the write brings may be a hand edit.
func (d *draft) keepNewer() {
	if _, err := record.Parse(d.Old.Marks[Record]); errors.Is(err, record.ErrNewer) {
		d.Marks.put(d.Old.Marks, Record)
	}
}

// warnStale says that a request for a reload was made for another generation of the workload.
func (d *draft) warnStale() {
	_, asked := d.New.Marks[Dummy]
	if _, valid := d.dummy(); asked && !valid && !d.Create && !d.New.Marks.same(d.Old.Marks, Dummy) && d.Rule != RuleExcluded {
		d.warn("pod-reloader dropped a stale request for a reload: it was made for another generation; look at the workload again")
	}
}

// fit drops what would make the object invalid, the least important first: without the Record the hash still detects a
// Change. Marks that the write has already count, too: a patch of other annotations brings them along.
func (d *draft) fit() {
	if stamp := len(d.Marks[Hash]) + len(d.Marks[Restart]); stamp > 0 && stamp > d.New.TemplateRoom {
		d.withoutStamp()
	}
	room := d.New.WorkloadRoom
	for _, slot := range []Slot{Record, LastReload} {
		if _, ok := d.Marks[slot]; ok && len(d.Marks[Record])+len(d.Marks[LastReload]) > room {
			d.noRoom = d.noRoom || slot == Record
			delete(d.Marks, slot)
		}
	}
	if d.noRoom {
		d.warn("pod-reloader: the annotations leave no room to record %d config objects: a change still restarts the pods, but its cause cannot be named; "+
			"name fewer, or shorten other annotations", len(d.tracked()))
	}
}

// withoutStamp takes a stamp back that has no room on the template. Pods that start now have the live state, also without a
// hash: the Record then belongs to none.
func (d *draft) withoutStamp() {
	if d.Create || d.TemplateChanged {
		d.Marks = d.Marks.Without(Hash, Restart, Record)
		if rec, err := policy.Fresh(d.input(policy.Known{}), "", true); err == nil && d.unread == nil {
			d.putRecord(d.Marks, rec)
		}
	} else {
		d.Marks = d.Old.Marks.Without(Dummy)
	}
	d.Changes, d.Stamped = nil, false
	d.warn("pod-reloader: the annotations of the pod template leave no room for the config-hash; shorten others")
}
