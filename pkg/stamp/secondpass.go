package stamp

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// passes is the time within which the API server calls a webhook again for the same request: no webhook can take longer
// than 30 seconds.
const passes = 30 * time.Second

// secondPass (rule 4a) fits a write that brings a new explanation of its own stamp, as our own first pass leaves it when
// another webhook comes in between.
func secondPass(req Write) bool {
	written := req.edit()
	if _, explained := written.explained(); explained {
		return req.TemplateChanged || !written.keepsStamp() || written.recordsStamp(req.tracked())
	}
	return written.unstamped()
}

// recordsNothing reports whether the write brings the empty Record of our own first pass, which saw no annotation that asks for reloads: another
// webhook has added it since. The Record of the old version still holds.
func (r Write) recordsNothing() bool {
	written := r.edit()
	rec, belongs := written.now.recordOf(written.old[Hash])
	brought := belongs && rec.Empty() && written.keeps(Hash) && !written.keeps(Record)
	return brought && len(r.tracked()) > 0 && len(r.Old.Intent.Tracked) > 0
}

// recordsStamp reports whether the write brings the Record of a stamp. If the stamp is not there, another webhook has removed
// config-restart: a reload without a stamp adopts everything.
func (e edit) recordsStamp(tracked []reference.Ref) bool {
	if e.keeps(Record) {
		return false
	}
	rec, _ := record.Parse(e.now[Record]) // one that cannot be read records nothing
	for _, item := range rec.Items(tracked) {
		if !item.Adopted {
			return true
		}
	}
	return false
}

// unstamped reports whether the write brings a new last reload and no hash: another webhook has removed it. One that puts the old hash
// back may do so after each call of ours: to stamp again would report a restart each time.
func (e edit) unstamped() bool {
	_, brought := e.newReload()
	_, hashed := e.now[Hash]
	return brought && !hashed
}

// stampWithoutChange returns the Record of a stamp without a Change, as our own first pass leaves it: a new hash, and a new Record of pods that
// start with it, beside the old last reload.
func (e edit) stampWithoutChange() (record.Record, bool) {
	rec, belongs := e.now.recordOf(e.now[Hash])
	return rec, belongs && !e.keeps(Record) && e.sameReload() && !e.keeps(Hash) && !rec.Empty() && rec.Stamped()
}

// stampedTooEarly reports whether our own first pass has stamped a template without an object that another webhook has added since, and that
// the old template has, too: for the whole write no reference has changed. The Record of a rollback has all that its pods name.
func (r Write) stampedTooEarly() bool {
	first, stamped := r.edit().stampWithoutChange()
	if !stamped {
		return false
	}
	known := r.Old.Known().Record
	return slices.ContainsFunc(r.tracked(), func(ref reference.Ref) bool {
		_, named := r.New.Required[ref]
		return named && known.Has(ref) && !first.Has(ref)
	})
}

// mayExplain reports whether a last reload may explain a write of this version that is judged now. Where the clocks of replicas differ, it
// is known by the version that it names; that of a Job, whose generation hardly changes, must be from after its creation, too.
func (v View) mayExplain(last record.LastReload, now time.Time) bool {
	recent := v.ReloadTime(now).Sub(last.Time).Abs() <= passes
	return recent || v.Generation != 0 && last.Generation == v.Generation && !last.Time.Before(v.created)
}

// ownReload returns the last reload that explains the write's own hash, if it is of the version that is being written. An undo brings that of
// an earlier one.
func (r Write) ownReload() (record.LastReload, bool) {
	last, explained := r.edit().explained()
	return last, explained && last.Generation == r.Old.Generation
}

// decideAgain decides as the first pass did: from what was known before the write, and the live state. The other webhook
// may have touched anything, and the configuration may have moved on.
func decideAgain(d *draft) bool {
	first, _ := d.edit().newReload()
	if d.ReadError != nil || first.Generation != d.Old.Generation || !d.Old.mayExplain(first, d.now) {
		return false
	}
	known := d.Old.Known()
	verdict := d.live.assess(known).Verdict
	asked := d.Revision && first.Cause == record.CauseVerifiedReload && d.fresh[Hash] == d.New.Managed[Hash]
	if verdict.Action != policy.Reload && !d.tracksOtherRefs(known) && !asked {
		return false
	}
	d.reload(d.Old.Managed, changesOf(verdict), first.Cause)
	d.keepExplanation()
	d.warnMissing()
	return true
}

// keepExplanation keeps the last reload that the write brings, where it explains the very stamp that was decided, and
// what the strategy wrote with it: a time in it is no reason to write again.
func (d *draft) keepExplanation() {
	if _, own := d.ownReload(); own && d.Managed.same(d.New.Managed, Hash, Restart) {
		d.Managed.put(d.New.Managed, LastReload, Fields)
	}
}

// keepFirstPass keeps the explanation of our first pass with the stamp of that: where nothing is due any more, since it has judged the
// Record that an undo brought, and left its own; and where the state, which it has read, cannot be read again. A stamp without a Change has
// no explanation.
func (d *draft) keepFirstPass() {
	rec, unexplained := d.edit().stampWithoutChange()
	last, explained := d.edit().explained()
	switch {
	case explained && d.Old.mayExplain(last, d.now):
		d.keepExplanation()
		d.firstPassKept = d.Managed.same(d.New.Managed, LastReload)
	case unexplained:
		d.firstPassKept = len(rec.Items(d.live.Refs)) == len(d.live.Refs) // else a reference has come since
	}
}

// keepFirstStamp keeps the stamp of our first pass, with its Record and its explanation, where the state cannot be read again: the request for
// the reload is purged, and a client that has verified it does not repeat it. It keeps no more of what is written by hand than rule 5 does.
func (d *draft) keepFirstStamp() bool {
	last, own := d.ownReload()
	if d.ReadError == nil || !own || !d.Old.mayExplain(last, d.now) || d.edit().keepsStamp() {
		return false
	}
	d.keep(d.edit().templateAnnotations())
	d.keepFirstPass()
	return true
}

// changesOf returns the Changes that a stamp brings to the pods. What is held is no Change of theirs.
func changesOf(verdict policy.Verdict) []policy.Change {
	if verdict.Action != policy.Reload {
		return nil
	}
	return verdict.Changes
}
