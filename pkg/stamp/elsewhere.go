package stamp

import "github.com/pod-reloader/pod-reloader/pkg/record"

// A workload of which nothing is tracked here may be tracked by another installation with the same digest key, or by replicas of this one
// that run with other flags. Only where no annotation asks any installation for reloads, no pods need what is known of them.

// mayBeTracked reports whether annotations ask for reloads, be it some that this installation does not read.
func (v View) mayBeTracked() bool { return v.Intent.Asked || v.AskedElsewhere }

// optsOut reports whether the write takes away all that asks for reloads.
func (r Write) optsOut() bool { return r.Old.mayBeTracked() && !r.New.mayBeTracked() }

// reloadedElsewhere reports whether nothing is tracked here, and the write brings the explanation of a reload that has just been made: the
// first pass of another installation, or a write of its loop.
func (f *facts) reloadedElsewhere() bool {
	last, own := f.ownReload()
	return own && len(f.live.Refs) == 0 && !f.New.Excluded && !f.optsOut() && f.Old.mayExplain(last, f.now)
}

// requestedElsewhere reports whether nothing is tracked here, but the Record names objects, and the write brings a request for a reload: it is
// for the installation that has recorded them.
func (f *facts) requestedElsewhere() bool {
	_, asked := f.dummy()
	known, belongs := f.Old.Managed.recordOf(f.Old.Managed[Hash])
	return asked && belongs && !known.Empty() && len(f.live.Refs) == 0 && !f.New.Excluded && !f.optsOut()
}

// recordElsewhere decides about the Record where nothing is tracked here. What is known of pods that stay, is kept, and so is what the write
// has recorded of them. Of pods that start now, nothing is known. Where the hash is another one, as after a rollback, pods may live that have
// it: what the write has recorded of them stays, and the old Record says nothing.
func (d *draft) recordElsewhere() {
	_, brought := d.New.Managed.recordOf(d.Managed[Hash])
	stay := !d.replacesPods() && !d.Restarts
	moved := d.Managed[Hash] != d.Old.Managed[Hash]
	switch {
	case !d.New.mayBeTracked() && !d.requestedElsewhere():
		d.forget()
	case brought && (stay || moved):
		d.Managed.put(d.New.Managed, Record)
	case !stay && !moved:
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
