package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// templateChanged (rule 5) fits a release, or its rollback, and what ends a restart of the pods, which needs a new template then. Whether a later
// restart does so depends on the time.
func templateChanged(req Write) bool {
	return req.TemplateChanged || req.EndsRestart || !req.restartsLater.IsZero()
}

// listsEdited (rule 5) fits a write that edits SAP's lists, as sets.
func listsEdited(req Write) bool { return !req.New.Intent.SameLists(req.Old.Intent) }

// stampRelease stamps a rollout where that restarts no pod without cause: a reload is due anyway, or the tracked Refs
// have moved, or a change could go unnoticed: a hash without a Record may be over other Refs or over another content, and pods may be left
// that have it. Otherwise the template bears the hash that it had: a release that changes no configuration leaves it alone, and a rollback
// finds its old pods.
func stampRelease(d *draft) bool {
	if !d.TemplateChanged && !d.EndsRestart {
		return false // the pods restart soon
	}
	templateAnnotations := d.judgedAnnotations()
	if d.ReadError != nil {
		if d.EndsRestart {
			d.completeRestart(templateAnnotations)
		} else {
			d.keep(templateAnnotations)
		}
		d.keepFirstPass()
		return true
	}
	known := d.knownOf(templateAnnotations)
	assessment := d.live.assess(known)
	switch verdict := assessment.Verdict; {
	case verdict.Action == policy.Reload:
		d.reload(templateAnnotations, verdict.Changes, d.causeOfRelease())
	case d.EndsRestart:
		d.completeRestart(templateAnnotations)
	case d.needsHash(known, assessment), d.revised(templateAnnotations):
		d.stamp(templateAnnotations, nil)
	default:
		d.keep(templateAnnotations)
		d.adoptCurrent(known)
		d.keepFirstPass()
	}
	d.warnMissing()
	return true
}

// needsHash reports whether a release needs another hash although no Change is due: its own one is not over what is tracked now, or
// cannot be compared with it.
func (f *facts) needsHash(known policy.Known, a policy.Assessment) bool {
	return !a.Current() && f.tracksOtherRefs(known) || a.Outdated() || known.Incomparable(f.live.Current)
}

// causeOfRelease is the cause of a reload by rule 5. A write that merely ends a restart is no release.
func (r Write) causeOfRelease() string {
	if r.TemplateChanged {
		return record.CauseRelease
	}
	return record.CauseConfigChange
}

// revised reports whether the revision digest that a template bears is not the present one. A template that was never stamped, or only
// before --hash=revision was set, has none, and no client waits for one before it has asked for a reload: a rollback finds its pods. One
// that asks in this write does.
func (f *facts) revised(templateAnnotations Managed) bool {
	hash := templateAnnotations[Hash]
	if !f.Revision || f.live.Revision() == "" || hash == f.fresh[Hash] {
		return false
	}
	given, _ := f.dummy()
	key, _ := digest.KeyOf(hash)
	_, keyed := f.live.Ring.Key(key)
	return given.digest == f.fresh[Hash] || hash != "" && !keyed
}

// stampLists stamps a workload whose lists were edited: SAP's dialect restarts it at once.
func stampLists(d *draft) bool {
	templateAnnotations := d.judgedAnnotations()
	if d.ReadError != nil {
		d.keep(templateAnnotations)
		d.keepFirstPass()
		return true
	}
	verdict := d.live.assess(d.knownOf(templateAnnotations)).Verdict
	d.reload(templateAnnotations, changesOf(verdict), record.CauseListEdit)
	d.warnMissing()
	return true
}

// judgedAnnotations returns the managed annotations of the template that rule 5 judges: the old ones, where the write brings the old hash
// without the old config-restart, as StatefulSet, DaemonSet and Rollout undo do. The pods of that template ran another content when
// config-restart was set, and the stored Record is not theirs. What our own first pass has stamped is the write's, unless it lacks a reference
// that is there again.
func (r Write) judgedAnnotations() Managed {
	written := r.edit()
	_, own := r.ownReload()
	_, restarted := written.old[Restart]
	undone := restarted && !written.keeps(Restart) && written.keeps(Hash) && !written.bringsRecord()
	if !own && (undone || r.stampedTooEarly()) {
		return written.old.only(stampKeys()...)
	}
	return written.templateAnnotations()
}

// knownOf returns what is known of pods whose template bears the given managed annotations: by the write's own Record,
// which rollout undo of a Deployment brings, else by the old object's, else by the hash alone.
func (r Write) knownOf(templateAnnotations Managed) policy.Known {
	return policy.KnownOf(templateAnnotations[Hash], r.New.Managed[Record], r.Old.Managed[Record]).AsOf(r.Old.version)
}

// keep lets the managed annotations that a template bears stand, with the Record that belongs to them. Where only the hash says what the pods
// of the template run, the present config-restart stays: when it was set, they may have run another content than the hash says. Pods that
// start now do so with the present content of what is not tracked any more, which is not read: tracked again, it is unknown.
func (d *draft) keep(templateAnnotations Managed) {
	d.Managed.put(templateAnnotations, stampKeys()...)
	if restart, restarted := d.Old.Managed[Restart]; restarted && !d.edit().bringsRecord() {
		d.Managed[Restart] = restart
	}
	if _, belongs := d.New.Managed.recordOf(templateAnnotations[Hash]); belongs {
		d.Managed.put(d.New.Managed, Record)
	}
	rec, belongs := d.Managed.recordOf(templateAnnotations[Hash])
	switch {
	case !belongs:
		delete(d.Managed, Record)
	case d.TemplateChanged:
		d.Managed[Record] = rec.Only(d.live.Refs).String()
	}
	d.Stamped = !d.Managed.sameStamp(d.Old.Managed)
}

// tracksOtherRefs reports whether the write brings a tracked Ref that neither the old object nor the known state has, or drops one
// that both have: the hash is then over other Refs. Opting in through another dialect than SAP's adopts instead, as long
// as there is no hash.
func (r Write) tracksOtherRefs(known policy.Known) bool {
	if !r.TemplateChanged && !listsEdited(r) {
		return false
	}
	if !r.Old.Intent.Asked && !listsEdited(r) && known.Hash == "" && known.Record.BelongsTo("") {
		return false
	}
	added := slices.DeleteFunc(r.tracked(), r.trackedBefore)
	dropped := slices.DeleteFunc(r.Old.Intent.Refs(), func(ref reference.Ref) bool {
		_, tracked := r.New.Intent.Tracked[ref]
		return tracked
	})
	return len(known.Unknown(added)) > 0 || len(known.Record.Items(dropped)) > 0
}
