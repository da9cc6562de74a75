package oracle

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The annotations of a Deployment that is paused with each reload.
const (
	pausePeriod = "deployment." + otherDomain + "pause-period"
	pausedAt    = "deployment." + otherDomain + "paused-at"
)

// longestPause is the longest period that has an effect.
const longestPause = 7 * 24 * time.Hour

// pause is what is known of the present pause of a Deployment.
type pause struct {
	// since is when the program's annotation was set or the period changed last, left when another writer resumed it.
	since, left time.Time
	// begun says that the program began it, reloaded that a restart came with it or after it.
	begun, reloaded bool
	reported        bool
}

// pausing is one version of a Deployment.
type pausing struct {
	paused bool
	// at is the program's annotation; ours says that it is there.
	at   string
	ours bool
	// period is how long a reload pauses it; 0 if it does not.
	period time.Duration
}

// pausingOf reads a version of a workload.
func pausingOf(object world.Object) pausing {
	if world.Text(object, "kind") != "Deployment" {
		return pausing{}
	}
	annotations := world.Annotations(object)
	at, ours := annotations[pausedAt].(string)
	p := pausing{paused: world.Section(object, "spec")["paused"] == true, at: at, ours: ours}
	if d, err := time.ParseDuration(world.Text(annotations, pausePeriod)); err == nil && d > 0 && d <= longestPause {
		p.period = d
	}
	return p
}

// over returns when a pause of the program ends: at once where its end is not known.
func (p pausing) over(now time.Time) time.Time {
	since, err := time.Parse(time.RFC3339, p.at)
	if end := since.Add(p.period); err == nil && p.period > 0 && end.Sub(now) <= 2*p.period {
		return end
	}
	return now
}

// begins reports whether a version begins a pause of the program.
func (p pausing) begins(before pausing) bool {
	return p.paused && !before.paused && p.ours && !before.ours
}

// next returns what is known of a pause of the program after a version of its Deployment that changes it.
func (p pause) next(before, after pausing, at time.Time) pause {
	next := pause{since: at}
	if before.ours && before.at == after.at {
		next.begun, next.reloaded = p.begun, p.reloaded
	}
	if !after.paused {
		next.left = at
	}
	return next
}

// pauseLaw has the laws "gates" and "prompt" for pauses.
type pauseLaw struct {
	*ledger
	passive
}

func (l *pauseLaw) owes(time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return w.eligible && w.paused() })
}

// stored records a stored change of a pause, and judges what the program has done.
func (l *pauseLaw) stored(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if w == nil || c.New == nil {
		return
	}
	before, after := pausingOf(c.Old), pausingOf(c.New)
	if after.ours && before != after {
		w.pause = w.pause.next(before, after, c.At)
	}
	reloaded := l.restarts(w, c)
	w.pause.reloaded = w.pause.reloaded || reloaded
	if !l.isProgram(c.Call) || c.Old == nil {
		l.judgeDroppedPause(w, c, before, after)
		return
	}
	w.pause.begun = w.pause.begun || after.begins(before)
	l.judgePauseBegin(w, c, before, after, reloaded)
	l.judgePauseEnd(w, c, before, after)
}

// restarts reports whether a stored change has another stamp.
func (l *pauseLaw) restarts(w *workload, c world.Commit) bool {
	path := world.TemplatePath(w.id.plural)
	return managedAnnotationsIn(world.Section(c.Old, path...), l.options.Prefix) !=
		managedAnnotationsIn(world.Section(c.New, path...), l.options.Prefix)
}

// judgePauseBegin is the law "gates" for reloads: one of a Deployment that asks for pauses pauses it.
func (l *pauseLaw) judgePauseBegin(w *workload, c world.Commit, before, after pausing, reloaded bool) {
	if after.paused && !before.paused {
		w.requests.allowed++ // it is resumed
	}
	if before.period == 0 || before.paused || !reloaded || l.options.Hidden.Unread || l.scope.flags.Hidden.Unread || w.inPart {
		return
	}
	l.count("pauses judged")
	if !after.paused || !after.ours {
		l.violate(c.At, broken{"gates", w.id.String(), "not-paused"},
			"the restart of %s does not pause it, although it asks for a pause of %s", l.when(c.At), before.period)
	}
}

// judgeDroppedPause is the law "prompt" for a pause of the program whose begin a user's write drops: nothing would end it. The begin gives
// way to all other annotations.
func (l *pauseLaw) judgeDroppedPause(w *workload, c world.Commit, before, after pausing) {
	if c.Sent == nil || !pausingOf(c.Sent).drops(before) || !w.inScope || w.unclear || !l.seen(w, c) {
		return
	}
	l.count("dropped begins of pauses judged")
	if !after.ours && sizeOf(world.Annotations(c.New))+len(pausedAt)+len(before.at) <= annotationLimit-leftToController {
		l.violate(c.At, broken{"prompt", w.id.String(), "pause-dropped"},
			"the write of %s at %s dropped %s of its pause, and the webhook has not kept it", c.Call.Client, l.when(c.At), pausedAt)
	}
}

// judgePauseEnd is the law "gates" for the end of a pause, which does not come before its period is over.
func (l *pauseLaw) judgePauseEnd(w *workload, c world.Commit, before, after pausing) {
	if !before.paused || after.paused || !before.ours || l.faults.clocksWrong(c.At) {
		return
	}
	if w.pause.begun && !w.pause.reloaded {
		l.count("pauses without a reload taken back")
		return
	}
	l.count("ends of pauses judged")
	early := before.over(c.At).Sub(c.At)
	if early > time.Second && l.healthy(w, w.pause.since) {
		l.violate(c.At, broken{"gates", w.id.String(), "resumed-early"},
			"the program resumed it at %s, but its pause of %s lasts for another %s", l.when(c.At), before.period, early)
	}
}

// paused reports whether the program has to end a pause, or to remove its annotation.
func (w *workload) paused() bool { return !w.gone && pausingOf(w.object).ours }

// watch is the law "prompt" for pauses: one of the program ends after its period, and its annotation does not outlive it.
func (l *pauseLaw) watch(w *workload, now time.Time) {
	if w.pause.reported || !w.paused() || !w.inScope || w.unclear || l.faults.clocksWrong(now) {
		return
	}
	if l.inEndingNamespace(w) || deleting(w.object) {
		return
	}
	calm, known := l.calmSince(w)
	if !known {
		return
	}
	l.judgePauseWithoutReload(w, now)
	is := pausingOf(w.object)
	how, due := "pause-not-ended", w.pause.since.Add(is.period)
	if !is.paused {
		how, due = "pause-not-cleaned", w.pause.left
	}
	if now.Sub(later(later(due, w.acts[2]), later(calm, w.changed))) <= chance+l.options.Slack {
		return
	}
	w.pause.reported = true
	l.violate(now, broken{"prompt", w.id.String(), how},
		"the pause that the program began at %s (%s) was to end at %s, but %s is still there",
		l.when(w.pause.since), is.at, l.when(due), pausedAt)
}

// judgePauseWithoutReload is the law "gates" for a pause of the program that no restart came with: it is taken back soon.
func (l *pauseLaw) judgePauseWithoutReload(w *workload, now time.Time) {
	if !w.pause.begun || w.pause.reloaded || now.Sub(w.pause.since) <= chance+l.options.Slack || !l.healthy(w, w.pause.since) {
		return
	}
	w.pause.reported = true
	l.violate(now, broken{"gates", w.id.String(), "paused-without-reload"},
		"the program has paused it at %s, and no restart came with that or since", l.when(w.pause.since))
}

// withoutPause returns two versions of a workload between which the program may have begun or ended a pause, without what it may
// have changed for that; others as they are.
func withoutPause(before, after world.Object) (a, b world.Object) {
	was, is := pausingOf(before), pausingOf(after)
	begins := !was.paused && is.paused && is.ours && was.period > 0
	ends := was.ours && !is.ours && !is.paused
	if !begins && !ends {
		return before, after
	}
	return plainPause(before), plainPause(after)
}

// drops reports whether a version leaves the Deployment in the pause of the program, but without its begin.
func (p pausing) drops(before pausing) bool {
	return before.ours && before.paused && p.paused && !p.ours
}

// withKeptPause returns what a user sent with the begin of a pause of the program that it drops, and the program keeps.
func withKeptPause(old, sent, stored world.Object) world.Object {
	was, is := pausingOf(old), pausingOf(stored)
	if !pausingOf(sent).drops(was) || !is.ours || is.at != was.at {
		return sent
	}
	metadata, annotations := maps.Clone(world.Section(sent, "metadata")), maps.Clone(world.Annotations(sent))
	if annotations == nil {
		annotations = world.Object{}
	}
	annotations[pausedAt] = was.at
	metadata["annotations"] = annotations
	return world.With(sent, metadata, "metadata")
}

func plainPause(object world.Object) world.Object {
	metadata, spec := maps.Clone(world.Section(object, "metadata")), maps.Clone(world.Section(object, "spec"))
	annotations := maps.Clone(world.Annotations(object))
	delete(annotations, pausedAt)
	delete(spec, "paused")
	metadata["annotations"] = annotations
	return world.With(world.With(object, metadata, "metadata"), spec, "spec")
}
