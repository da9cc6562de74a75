package stamp

import (
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// restarts reports whether a write replaces the pods without a new template: it sets spec.restartAt of an Argo Rollout.
func restarts(old, current workload.Object) bool {
	at := func(o workload.Object) string { return textIn(o.Raw, "spec", "restartAt") }
	return current.Kind.Restartable() && at(current) != "" && at(current) != at(old)
}

// RestartTime returns the spec.restartAt of a reload at some time: the controller restarts the pods that were created before it, and times
// of creation have no fractions of a second.
func RestartTime(reload time.Time) time.Time { return reload.Truncate(time.Second).Add(time.Second) }

// restartsSoon is how far in the future a user may restart the pods whose restart by the loop is not complete: clocks differ, and so much later
// the pods start with the present configuration.
const restartsSoon = time.Minute

// readEndOfRestart reads whether a write ends the last restart by the loop before the controller has noted that it is complete: it takes
// spec.restartAt away, as a PUT of a manifest without it does, or sets an earlier time. Pods may be left then that started earlier. A restart
// by a user, at a later time, is in the place of that by the loop, if it is not far in the future. The next restart by the loop leaves no pods,
// also where its clock is behind that of the leader before.
func (r *Write) readEndOfRestart(old, current workload.Object) {
	last, err := record.ParseLastReload(r.Old.Managed[LastReload])
	if _, byLoop := r.restartByLoop(); err != nil || !last.Restarted || !current.Kind.Restartable() || byLoop {
		return
	}
	reload, before, at := RestartTime(last.Time), timeIn(old.Raw, "spec", "restartAt"), timeIn(current.Raw, "spec", "restartAt")
	byLoop := before.Equal(reload) || before.After(reload) && r.Old.Intent.Restart
	switch {
	case !byLoop || !timeIn(old.Raw, "status", "restartedAt").Before(reload):
	case at.Before(reload):
		r.EndsRestart = true
	case !at.Equal(before):
		r.restartsLater = at
	}
}

// endsRestartAt reports whether a write that is made at some time keeps the last restart by the loop from being completed.
func (r Write) endsRestartAt(now time.Time) bool {
	return r.EndsRestart || r.restartsLater.After(now.Add(restartsSoon))
}

// restartByLoop returns how a write explains a restart of the pods by the loop without a stamp; false if it is none.
func (r Write) restartByLoop() (record.LastReload, bool) {
	last, own := r.ownReload()
	return last, own && r.Restarts && r.edit().keepsStamp()
}

// timeIn returns the time in a field of a section, zero if there is none.
func timeIn(raw map[string]any, section, field string) time.Time {
	at, _ := time.Parse(time.RFC3339, textIn(raw, section, field))
	return at
}

func textIn(raw map[string]any, section, field string) string {
	fields, _ := raw[section].(map[string]any)
	text, _ := fields[field].(string)
	return text
}

// completeRestart replaces all pods by the template in place of a restart that the write ends. The reload has the causes of the restart.
func (d *draft) completeRestart(templateAnnotations Managed) {
	if d.ReadError != nil {
		d.keep(templateAnnotations)
	} else {
		d.stamp(templateAnnotations, nil)
	}
	if !d.TemplateChanged && d.Managed.sameStamp(d.Old.Managed) {
		d.Managed[Restart] = strconv.FormatInt(d.Old.Generation, 10)
	}
	d.Stamped = !d.Managed.sameStamp(d.Old.Managed)
	switch {
	case !d.Stamped: // the release replaces the pods
	case listsEdited(d.Write):
		d.Managed[LastReload] = d.explain(d.Managed[Hash], nil, templateAnnotations, record.CauseListEdit)
	default:
		d.Managed[LastReload] = d.explainAgain(d.Managed[Hash], templateAnnotations)
	}
}

// recordRestart stores the Record and the explanation of a write by which the loop restarts the pods without a stamp. No clock is compared: the
// pods restart in any case, and where that is not recorded, they restart again. They start with what is read here, or with something newer. What
// cannot be verified here stays as the loop has read it: it is older at most, so that no Change is missed.
func (d *draft) recordRestart(last record.LastReload) {
	d.Managed.put(d.New.Managed, LastReload)
	_, written := d.New.Managed.recordOf(d.Managed[Hash])
	if written {
		d.Managed.put(d.New.Managed, Record)
	}
	held := func(ref reference.Ref) bool { return d.live.Current[ref].Hold != nil }
	if d.ReadError != nil || d.live.unverified() != nil || slices.ContainsFunc(d.live.Refs, held) {
		return
	}
	if verdict := d.live.assess(d.Old.Known()).Verdict; verdict.Action == policy.Reload && !d.edit().recordsLive(d.live, d.live.Refs) {
		now := policy.NewLastReload(verdict.Changes, last.Time, d.Old.Managed[LastReload])
		now.Hash, now.Cause, now.Restarted, now.Generation = last.Hash, last.Cause, last.Restarted, last.Generation
		d.Changes, d.Managed[LastReload] = verdict.Changes, now.String()
	}
	rec, err := d.live.record(d.Managed[Hash], true)
	if err != nil {
		return
	}
	restart, fits := d.New.restartBeside(rec, d.Managed[LastReload], last.Shortest().String())
	d.Managed.put(restart, LastReload)
	if d.overBudget = !fits; fits || !written {
		d.Managed.put(restart, Record)
	}
}

// NewRestart returns the annotations of a write by which the loop restarts the pods without a stamp, and how it explains the reload.
func (v View) NewRestart(rec record.Record, changes []policy.Change, now time.Time) (restart Managed, last record.LastReload, fits bool) {
	last = policy.NewLastReload(changes, v.ReloadTime(now), v.Managed[LastReload])
	last.Hash, last.Restarted, last.Generation = record.HashName(v.Managed[Hash]), true, v.Generation
	if restart, fits = v.restartBeside(rec, last.String(), last.Shortest().String()); restart[LastReload] != last.String() {
		last = last.Shortest()
	}
	return restart, last, fits
}

// restartBeside returns a Record with the first of some texts of last-reload beside which it fits; with the last one alone where it fits
// nowhere. Without the Record the restart would be repeated: the explanation gives way to it.
func (v View) restartBeside(rec record.Record, explanations ...string) (restart Managed, fits bool) {
	for _, explanation := range explanations {
		restart = Managed{LastReload: explanation}
		if restart[Record], fits = rec.Text(v.WorkloadBudget - len(explanation)); fits {
			return restart, true
		}
	}
	delete(restart, Record)
	return restart, false
}
