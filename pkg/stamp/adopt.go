package stamp

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// somethingUnknown (rule 7) applies to a workload with a tracked object that has no Entry in the Record. A workload that is handled
// for the first time has no Record.
func somethingUnknown(req Write) bool {
	return len(req.Old.Known().Unknown(req.tracked())) > 0
}

// adopt takes the current state of what is unknown as known: nothing restarts.
func adopt(d *draft) bool {
	d.adoptCurrent(d.known())
	d.warnMissing()
	return true
}

// adoptCurrent adopts into the Record what is not known of the template with the decided managed annotations. A Record under a
// lost key is left to the loop, which adopts it once for a key, so that two installations do not fight over a workload.
func (d *draft) adoptCurrent(known policy.Known) {
	if d.fresh == nil {
		return
	}
	if a := d.assess(known); a.Verdict.Foreign == "" {
		a.Verdict.Adopt = append(d.adoptable(a.Verdict), d.startedWithout(known)...)
		d.record(known, a)
	}
}

// startedWithout returns the optional objects that the pods of a release start without, although they are recorded. Where their deletion
// restarts nothing, but their creation does, they are recorded as absent from here on.
func (f *facts) startedWithout(known policy.Known) []reference.Ref {
	if !f.TemplateChanged {
		return nil
	}
	items := known.Record.Items(f.refs)
	return slices.DeleteFunc(slices.Clone(f.refs), func(ref reference.Ref) bool {
		item, recorded := items[ref]
		trigger := f.New.Intent.Tracked[ref]
		return !recorded || item.Absent() || !f.inputs.States[ref].Absent || f.New.Required[ref] || !trigger.OnCreate || trigger.OnDelete
	})
}

// adoptable returns the Refs that the webhook adopts without the loop.
func (f *facts) adoptable(verdict policy.Verdict) []reference.Ref {
	return slices.DeleteFunc(slices.Clone(verdict.Adopt), f.mayHaveAppeared)
}

// mayHaveAppeared reports whether the creation of a Ref may be a Change that the loop has yet to record: only the loop knows whether the
// object is newer than the pods. New pods start with it.
func (f *facts) mayHaveAppeared(ref reference.Ref) bool {
	return f.trackedBefore(ref) && f.New.Intent.Tracked[ref].OnAppear && !f.TemplateChanged
}

// recordsAppeared reports whether the write is the adoption of some Refs by the loop. Those that it has seen appear are recorded as
// absent, and are so in the live state from here on.
func (d *draft) recordsAppeared(refs []reference.Ref) bool {
	rec, err := record.Parse(d.New.Managed[Record])
	if err != nil {
		return false
	}
	read := d.inputs.States
	d.inputs.States = maps.Clone(read)
	items := rec.Items(d.Old.Known().Unknown(refs))
	for ref, item := range items {
		if item.Absent() && d.New.Intent.Tracked[ref].OnAppear {
			d.inputs.States[ref] = digest.State{Absent: true}
		}
	}
	if d.recordsLive(refs) {
		return true
	}
	d.inputs.States = read
	return false
}

// adoptAll is adoptCurrent under a lost key, too.
func (d *draft) adoptAll() {
	known := d.known()
	d.record(known, d.assess(known))
}

// record writes what an assessment adopts into the Record. Pods that are replaced start with the present content of what is not tracked,
// which is not read.
func (d *draft) record(known policy.Known, a policy.Assessment) {
	if len(a.Verdict.Adopt) == 0 {
		return
	}
	rec, err := a.Adopt(d.input(known), d.Managed[Hash])
	if err != nil {
		return
	}
	if d.replacesPods() || d.Restarts {
		rec = rec.Only(d.refs)
	}
	d.putRecord(d.Managed, rec)
}
