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
	if _, explained := req.explained(); explained {
		return req.TemplateChanged || !req.New.Managed.sameStamp(req.Old.Managed) || req.recordsStamp()
	}
	return req.unstamped()
}

// recordsNothing reports whether the write brings the empty Record of our own first pass, which saw no annotation that asks for reloads: another
// webhook has added it since. The Record of the old version still holds.
func (r Write) recordsNothing() bool {
	rec, belongs := r.New.Managed.recordOf(r.Old.Managed[Hash])
	brought := belongs && rec.Empty() && r.New.Managed.same(r.Old.Managed, Hash) && !r.New.Managed.same(r.Old.Managed, Record)
	return brought && len(r.tracked()) > 0 && len(r.Old.Intent.Tracked) > 0
}

// recordsStamp reports whether the write brings the Record of a stamp. If the stamp is not there, another webhook has removed
// config-restart: a reload without a stamp adopts everything.
func (r Write) recordsStamp() bool {
	rec, _ := record.Parse(r.New.Managed[Record]) // one that cannot be read records nothing
	if r.New.Managed.same(r.Old.Managed, Record) {
		return false
	}
	for _, item := range rec.Items(r.tracked()) {
		if !item.Adopted {
			return true
		}
	}
	return false
}

// unstamped reports whether the write brings a new last reload and no hash: another webhook has removed it. One that puts the old hash
// back may do so after each call of ours: to stamp again would report a restart each time.
func (r Write) unstamped() bool {
	_, err := record.ParseLastReload(r.New.Managed[LastReload])
	_, hashed := r.New.Managed[Hash]
	return err == nil && !hashed && !r.sameReload()
}

// explained returns the last reload that the write brings, if it is a new one and that of the write's own hash.
func (r Write) explained() (record.LastReload, bool) {
	last, err := record.ParseLastReload(r.New.Managed[LastReload])
	return last, err == nil && !r.sameReload() && last.BelongsTo(r.New.Managed[Hash])
}

// unexplainedStamp returns the Record of a stamp without a Change, as our own first pass leaves it: a new hash, and a new Record of pods that
// start with it, beside the old last reload.
func (r Write) unexplainedStamp() (record.Record, bool) {
	rec, _ := r.New.Managed.recordOf(r.New.Managed[Hash])
	return rec, r.bringsRecord() && r.sameReload() && !r.New.Managed.same(r.Old.Managed, Hash) && !rec.Empty() && rec.Stamped()
}

// stampedTooEarly reports whether our own first pass has stamped a template without an object that another webhook has added since, and that
// the old template has, too: for the whole write no reference has changed. The Record of a rollback has all that its pods name.
func (r Write) stampedTooEarly() bool {
	first, stamped := r.unexplainedStamp()
	if !stamped {
		return false
	}
	known := r.Old.Known().Record
	return slices.ContainsFunc(r.tracked(), func(ref reference.Ref) bool {
		_, named := r.New.Required[ref]
		return named && known.Has(ref) && !first.Has(ref)
	})
}

// sameReload reports whether the write has the last reload that the old object has, or a shortened form of it: our own first pass
// leaves that where the annotations are too large.
func (r Write) sameReload() bool {
	if r.New.Managed.same(r.Old.Managed, LastReload) {
		return true
	}
	before, unknown := record.ParseLastReload(r.Old.Managed[LastReload])
	last, err := record.ParseLastReload(r.New.Managed[LastReload])
	return err == nil && unknown == nil && last.Same(before)
}

// recent reports whether a last reload may be one of the write that is being judged.
func (f *facts) recent(last record.LastReload) bool {
	return f.Old.ReloadTime(f.inputs.Now).Sub(last.Time).Abs() <= passes
}

// mayExplain reports whether a last reload may explain the write that is being judged. Where the clocks of replicas differ, it is known by the
// version that it names; that of a Job, whose generation hardly changes, must be from after its creation, too.
func (f *facts) mayExplain(last record.LastReload) bool {
	return f.recent(last) || f.Old.Generation != 0 && f.ofThisWrite(last) && !last.Time.Before(f.Old.created)
}

// ofThisWrite reports whether a last reload is of the version that is being written. An undo brings that of an earlier one.
func (r Write) ofThisWrite(last record.LastReload) bool { return last.Generation == r.Old.Generation }

// decideAgain decides as the first pass did: from what was known before the write, and the live state. The other webhook
// may have touched anything, and the configuration may have moved on.
func decideAgain(d *draft) bool {
	first, _ := d.explained()
	if d.ReadError != nil || !d.mayExplain(first) || !d.ofThisWrite(first) {
		return false
	}
	known := d.Old.Known()
	verdict := d.assess(known).Verdict
	asked := d.inputs.Revision && first.Cause == record.CauseVerifiedReload && d.fresh[Hash] == d.New.Managed[Hash]
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
	if last, ok := d.explained(); ok && d.ofThisWrite(last) && d.Managed.same(d.New.Managed, Hash, Restart) {
		d.Managed.put(d.New.Managed, LastReload, Fields)
	}
}

// keepFirstPass keeps the explanation of our first pass with the stamp of that: where nothing is due any more, since it has judged the
// Record that an undo brought, and left its own; and where the state, which it has read, cannot be read again. A stamp without a Change has
// no explanation.
func (d *draft) keepFirstPass() {
	rec, unexplained := d.unexplainedStamp()
	last, explained := d.explained()
	switch {
	case explained && d.mayExplain(last):
		d.keepExplanation()
		d.firstPassKept = d.Managed.same(d.New.Managed, LastReload)
	case unexplained:
		d.firstPassKept = len(rec.Items(d.refs)) == len(d.refs) // else a reference has come since
	}
}

// keepFirstStamp keeps the stamp of our first pass, with its Record and its explanation, where the state cannot be read again: the request for
// the reload is purged, and a client that has verified it does not repeat it. It keeps no more of what is written by hand than rule 5 does.
func (d *draft) keepFirstStamp() bool {
	last, ok := d.explained()
	if d.ReadError == nil || !ok || !d.ofThisWrite(last) || !d.mayExplain(last) || d.New.Managed.sameStamp(d.Old.Managed) {
		return false
	}
	d.keep(d.templateAnnotations())
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
