package stamp

import "github.com/pod-reloader/pod-reloader/pkg/record"

// A workload of which nothing is tracked here may be tracked by another installation with the same digest key, or by replicas of this one
// that run with other flags. They need what is known of the pods, as long as an annotation asks any installation for reloads.

// mayBeTracked reports whether annotations ask for reloads, be it some that this installation does not read.
func (v View) mayBeTracked() bool { return v.Intent.Asked || v.AskedElsewhere }

// optsOut reports whether the write takes away all that asks for reloads.
func (r Write) optsOut() bool { return r.Old.mayBeTracked() && !r.New.mayBeTracked() }

// IsRecorded reports whether something is known of the pods, for the installation that tracks objects of the workload: the Record names some, or
// a hash is left without one.
func (v View) IsRecorded() bool {
	known := v.Known()
	return !known.Record.Empty() || known.Hash != "" && v.mayBeTracked()
}

// leavesToOthers reports whether nothing is tracked here of a workload that another installation may handle.
func (f *facts) leavesToOthers() bool {
	return len(f.live.Refs) == 0 && !f.New.Excluded && !f.optsOut()
}

// reloadedElsewhere reports whether the write brings a reload that another installation has just made: in its first pass, or in a write of its
// loop.
func (f *facts) reloadedElsewhere() bool {
	if !f.leavesToOthers() {
		return false
	}
	last, own := f.ownReload()
	return own && f.Old.mayExplain(last, f.now) || f.stampedBeyondBudget()
}

// stampedBeyondBudget reports whether the write brings another stamp, where the annotations have no bytes for the shortest explanation of one. A
// stamp by hand looks the same there.
func (f *facts) stampedBeyondBudget() bool {
	written := f.edit()
	if f.TemplateChanged || !f.New.mayBeTracked() || !written.movesStamp() {
		return false
	}
	hash := record.HashName(written.now[Hash])
	shortest := record.LastReload{
		Time: f.now, Hash: hash, Digest: hash, Generation: f.Old.Generation, Cause: record.CauseVerifiedReload, More: maxMore,
	}
	explained := written.now.Without(Record, Dummy)
	explained[LastReload] = shortest.String()
	return f.New.bytesLeft(explained, false) < 0
}

// maxMore is the most Changes that a last reload counts: a workload tracks no more objects.
const maxMore = 1000

// requestedElsewhere reports whether the write brings a request for a reload that is for the installation that has recorded the pods.
func (f *facts) requestedElsewhere() bool {
	_, asked := f.dummy()
	return asked && f.leavesToOthers() && f.Old.IsRecorded()
}

// recordElsewhere decides about the Record where nothing is tracked here. The first row that applies decides:
//
//	no annotation asks for reloads   Nothing is known any more, unless the write brings a request for another installation.
//	the write ends a restart         Of the pods that are left, the hash has the content: the Record goes.
//	the pods stay                    What the write has recorded of them stays, else what is stored.
//	the hash is another one          The same: after a rollback, pods may live that have it. The stored Record is void, so that the hash counts.
//	a label excludes the workload    What another installation has recorded of the pods that start now, which it adopts, stays.
//	any other write                  Of the pods that start now, nothing is known.
func (d *draft) recordElsewhere() {
	rec, brought := d.New.Managed.recordOf(d.Managed[Hash])
	stay := !d.replacesPods() && !d.Restarts
	moved := d.Managed[Hash] != d.Old.Managed[Hash]
	switch {
	case !d.New.mayBeTracked() && !d.requestedElsewhere():
		d.forget()
	case d.EndsRestart && stay && !moved:
		delete(d.Managed, Record)
	case stay, moved, d.New.Excluded && brought && !rec.Stamped() && !d.edit().keeps(Record):
		if brought {
			d.Managed.put(d.New.Managed, Record)
		}
	default:
		d.forget()
	}
}

// forget writes the empty Record. Opting in later starts from what is there then.
func (d *draft) forget() {
	_, hashed := d.Managed[Hash]
	_, recorded := d.Managed[Record]
	if hashed || recorded {
		d.putRecord(record.New(d.Managed[Hash], "", nil))
	}
}
