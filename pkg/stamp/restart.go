package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// restarts reports whether a write replaces the pods without a new template: it sets spec.restartAt of an Argo Rollout.
func restarts(old, current workload.Object) bool {
	at := func(o workload.Object) string {
		spec, _ := o.Raw["spec"].(map[string]any)
		text, _ := spec["restartAt"].(string)
		return text
	}
	return current.Kind.Restartable() && at(current) != "" && at(current) != at(old)
}

// recordsRestart stores the Record and the explanation of a write by which the loop restarts the pods without a stamp; false if it is
// none. No clock is compared: the pods restart in any case, and where that is not recorded, they restart again.
func (d *draft) recordsRestart() bool {
	last, ok := d.explained()
	if !ok || !d.Restarts || !d.ofThisWrite(last) || !d.New.Managed.sameStamp(d.Old.Managed) {
		return false
	}
	d.recordRestart(last)
	return true
}

// recordRestart is recordsRestart with the last reload that the write brings. The pods restart in any case, and start with what is read
// here, or with something newer. What cannot be verified here stays as the loop has read it: it is older at most, so that no Change is
// missed.
func (d *draft) recordRestart(last record.LastReload) {
	d.Managed.put(d.New.Managed, LastReload)
	if d.unverified() != nil || slices.ContainsFunc(d.refs, func(ref reference.Ref) bool { return d.live.States[ref].Hold != nil }) {
		d.putWrittenRecord()
		return
	}
	if verdict := d.assess(d.Old.Known()).Verdict; verdict.Action == policy.Reload && !d.recordsLive(d.refs) {
		now := policy.NewLastReload(verdict.Changes, last.Time, d.Old.Managed[LastReload])
		now.Hash, now.Cause, now.Generation = last.Hash, last.Cause, last.Generation
		d.Changes, d.Managed[LastReload] = verdict.Changes, now.String()
	}
	rec, err := policy.Fresh(d.input(policy.Known{}), d.Managed[Hash], true)
	if err != nil {
		d.putWrittenRecord()
		return
	}
	if d.putRecord(d.Managed, rec); d.overBudget {
		// Without the Record the restart would be repeated; the explanation gives way to it.
		d.Managed[LastReload] = last.Shortest().String()
		if d.putRecord(d.Managed, rec); d.overBudget {
			d.putWrittenRecord()
		}
	}
}

// putWrittenRecord takes the Record that the write brings, if it belongs to the template.
func (d *draft) putWrittenRecord() {
	if _, belongs := d.New.Managed.recordOf(d.Managed[Hash]); belongs {
		d.Managed.put(d.New.Managed, Record)
	}
}
