package stamp

import "github.com/pod-reloader/pod-reloader/pkg/policy"

// somethingUnknown (rule 7) fits a workload of which not all is known: at first sight nothing is.
func somethingUnknown(req Request) bool {
	return len(req.Old.Managed.Known().Unknown(req.tracked())) > 0
}

// adopt takes the current state of what is unknown as known: nothing restarts.
func adopt(d *draft) bool {
	d.adoptCurrent(d.Managed.Known())
	return true
}

// adoptCurrent adopts into the Record what is not known of the template with the decided managed annotations. A Record under a
// lost key is left to the loop, which adopts it once for a key, so that two installations do not fight over a workload.
func (d *draft) adoptCurrent(known policy.Known) {
	if d.fresh == nil {
		return
	}
	if a := d.assess(known); a.Verdict.Foreign == "" {
		d.record(known, a)
	}
}

// adoptAll is adoptCurrent under a lost key, too.
func (d *draft) adoptAll() {
	known := d.Managed.Known()
	d.record(known, d.assess(known))
}

// record writes what an assessment adopts into the Record.
func (d *draft) record(known policy.Known, a policy.Assessment) {
	if len(a.Verdict.Adopt) == 0 {
		return
	}
	if rec, err := a.Adopt(d.input(known), d.Managed[Hash]); err == nil {
		d.putRecord(d.Managed, rec)
	}
}
