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
	if a := d.live.assess(known); a.Verdict.Foreign == "" || d.startsBesideLostHash(known) {
		a.Verdict.Adopt = append(d.adoptable(a.Verdict), d.startedWithout(known)...)
		d.record(known, a)
	}
}

// startsBesideLostHash reports whether a hash under a lost key is all that is known of a template, and the write replaces the pods: the new ones
// start with what is adopted. Otherwise the loop adopts it, and reports that a change may be missed.
func (f *facts) startsBesideLostHash(known policy.Known) bool {
	return known.Hash != "" && f.ringRead && f.TemplateChanged
}

// startedWithout returns the optional objects that the pods of a release start without, although they are recorded. Where their deletion
// restarts nothing, but their creation does, they are recorded as absent from here on.
func (f *facts) startedWithout(known policy.Known) []reference.Ref {
	if !f.TemplateChanged {
		return nil
	}
	items := known.Record.Items(f.live.Refs)
	return slices.DeleteFunc(slices.Clone(f.live.Refs), func(ref reference.Ref) bool {
		item, recorded := items[ref]
		trigger := f.New.Intent.Tracked[ref]
		return !recorded || item.Absent() || !f.live.Current[ref].Absent || f.New.Required[ref] || !trigger.OnCreate || trigger.OnDelete
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

// withAppeared returns the live state as it would be if the write were an adoption by the loop, which has seen some objects appear: those of
// some Refs that the write records as absent are absent.
func (f *facts) withAppeared(refs []reference.Ref) live {
	seen := f.live
	seen.Current = maps.Clone(seen.Current)
	rec, _ := record.Parse(f.New.Managed[Record]) // one that cannot be read records nothing
	for ref, item := range rec.Items(f.Old.Known().Unknown(refs)) {
		if item.Absent() && f.New.Intent.Tracked[ref].OnAppear {
			seen.Current[ref] = digest.State{Absent: true}
		}
	}
	return seen
}

// adoptAll is adoptCurrent under a lost key, too.
func (d *draft) adoptAll() {
	known := d.known()
	d.record(known, d.live.assess(known))
}

// record writes what an assessment adopts into the Record. Pods that are replaced start with the present content of what is not tracked,
// which is not read.
func (d *draft) record(known policy.Known, a policy.Assessment) {
	if len(a.Verdict.Adopt) == 0 {
		return
	}
	rec, err := a.Adopt(d.live.beside(known), d.Managed[Hash])
	if err != nil {
		return
	}
	if d.replacesPods() || d.Restarts {
		rec = rec.Only(d.live.Refs)
	}
	d.putRecord(rec)
}
