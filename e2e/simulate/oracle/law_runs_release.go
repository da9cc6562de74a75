package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A release can stamp a change before the program does, and what is run can change between the run and its stamp. The program then runs the
// CronJob after the stamp, unless the leader changes.

// owedRun is a run that must follow a stamp.
type owedRun struct {
	// before is the stamp before the change, of the object that has changed.
	before *stamp
	of     ref
	// stamp is the one with the change. A run has its content, or is made after it.
	stamp *stamp
	since time.Time
}

// how says what stamps the change.
func (o *owedRun) how() string {
	if o.stamp.program {
		return "reload"
	}
	return "release"
}

// lastOwn returns the last stamp that the program has asked for, or the first one: a run may follow each one of a release.
func (w *workload) lastOwn() *stamp {
	for _, s := range slices.Backward(w.stamps) {
		if s.program {
			return s
		}
	}
	if len(w.stamps) > 0 {
		return w.stamps[0]
	}
	return nil
}

// uncertainSince reports whether the program may not have had a chance yet to look at what belongs to a stamp, or to the present one.
func (w *workload) uncertainSince(s *stamp) bool { return w.uncertain(s) || w.uncertain(w.last()) }

// released notes what a stamp of a user owes. A release that changes nothing else leaves what an earlier one owes.
func (l *runsLaw) released(r restamp) {
	w, before, s := r.workload, r.before, r.stamp
	if w.id.plural != "cronjobs" || s.program {
		return
	}
	earlier := l.owed[w.uid]
	delete(l.owed, w.uid)
	if !l.clearlyReleased(r) {
		return
	}
	explained := l.explains(r.commit)
	for r := range l.atOnce(w) {
		kept, modified := l.releasedWith(w, before, s, r)
		switch {
		case modified && explained && !l.ranWith(w, s):
			l.owed[w.uid] = &owedRun{before, r, s, s.at}
			return
		case !kept:
			earlier = nil
		}
	}
	if earlier != nil {
		l.owed[w.uid] = earlier
	}
}

// releasedWith is changed for a release. What the program may adopt from that on says nothing about the stamp before.
func (l *runsLaw) releasedWith(w *workload, before, s *stamp, r ref) (kept, modified bool) {
	known, h := believed{}, l.contents.of(w.id.namespace, r)
	for _, p := range w.knowledgeBefore(before, r, s.version) {
		known.addPeriod(h, p, l.version)
	}
	_, read := l.findContents(w, before, s, r)
	was, knows := known.only()
	now, alone := read.only()
	sure := knows && alone
	return sure && was == now, sure && was != now && was != absent && now != absent
}

// clearlyReleased reports whether it is clear what the program knows of a release of a CronJob.
func (l *runsLaw) clearlyReleased(r restamp) bool {
	w, before, s := r.workload, r.before, r.stamp
	return s.seen && w.eligible && !suspended(w.object) && s.visible != before.visible && !l.missesRequired(w, s) &&
		l.healthy(w, s.arrivedAt) && !w.unclearSince(before) && !l.unclearCause(w, before) && w.keyChanged <= before.version
}

// explains reports whether a write brings a new last reload.
func (l *runsLaw) explains(c world.Commit) bool {
	name := l.options.Prefix + reloadAnnotation
	value := world.Text(world.Annotations(c.New), name)
	return value != "" && value != world.Text(world.Annotations(c.Old), name)
}

// ranWith reports whether the last run of a CronJob may have had the content of a stamp.
func (l *runsLaw) ranWith(w *workload, s *stamp) bool {
	runs := l.runs[w.uid]
	return len(runs) > 0 && l.hadContentOf(w, s, runs[len(runs)-1])
}

// hadContentOf reports whether a run may have been made with the content that a stamp was made with. The program reads contents before it
// looks at the CronJob and its Jobs.
func (l *runsLaw) hadContentOf(w *workload, s *stamp, made run) bool {
	from := min(made.content, l.versionAt(made.at.Add(-readBefore)))
	for r := range l.atOnce(w) {
		_, read := l.findContents(w, s, s, r)
		h := l.contents.of(w.id.namespace, r)
		if !l.hadOneOf(h, &period{from: from, to: made.version}, read) {
			return false
		}
	}
	return true
}

// hadOneOf reports whether an object had one of some contents at some time of a period.
func (l *runsLaw) hadOneOf(h *history, p *period, some believed) bool {
	for content := range some {
		if l.hadContent(h, p, content) {
			return true
		}
	}
	return false
}

// paid reports whether a run was made with what is owed, or with what is newer.
func (l *runsLaw) paid(w *workload, o *owedRun) bool {
	return l.started(w, o) || slices.ContainsFunc(l.runs[w.uid], func(made run) bool {
		return made.version > o.stamp.version || made.version > o.before.version && l.hadContentOf(w, o.stamp, made)
	})
}

// started reports whether another Job of a CronJob was created from the pod template that owes a run: with a policy that forbids two Jobs, it
// counts as the run.
func (l *runsLaw) started(w *workload, o *owedRun) bool {
	if policy := policyOf(w.object); policy != forbid && policy != replace {
		return false
	}
	name := l.options.Prefix + requestAnnotation
	hash := world.Text(world.Annotations(world.Section(w.object, world.PodPath(w.id.plural)...)), name)
	for _, j := range l.everJob {
		_, owner := controllerOf(j.workload.object)
		template := world.Section(j.workload.object, world.PodPath(jobsResource)...)
		if owner == w.uid && j.created.version > o.stamp.version && hash != "" && world.Text(world.Annotations(template), name) == hash {
			return true
		}
	}
	return false
}

// watch looks whether a run that a stamp owes is late.
func (l *runsLaw) watch(w *workload, now time.Time) {
	l.judgeReturn(w, now)
	o := l.owed[w.uid]
	if o == nil {
		return
	}
	_, asked := l.atOnce(w)[o.of]
	calm, known := l.calmSince(w)
	switch {
	case l.paid(w, o):
		l.count("runs after a " + o.how())
		delete(l.owed, w.uid)
	case !asked, !w.eligible, suspended(w.object), w.keyChanged > o.before.version, l.unclearCause(w, o.before):
		delete(l.owed, w.uid)
	case !known, l.waitsForRuns(w), !w.due.since.IsZero():
		o.since = now
	case now.Sub(later(later(o.since, w.acts[2]), later(calm, l.slow.last(w.id.namespace)))) > l.slowest().refractory+runPause+l.options.Slack+jobSlack:
		delete(l.owed, w.uid)
		l.violate(now, broken{"jobs", w.id.String(), "run/missing-after-" + o.how()},
			"a %s stamped it at %s for a change of %s, but the program has not run it with that", o.how(), l.when(o.stamp.at), o.of)
	}
}

// succeeded forgets what is owed: the earlier leader may have made the Job or not, and the next one does not know.
func (l *runsLaw) succeeded() {
	clear(l.owed)
	clear(l.withdrawn)
	l.ledFrom = l.version
}

// owes reports whether a run is to follow a stamp, and can.
func (l *runsLaw) owes(time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool {
		_, withdrawn := l.withdrawn[w.uid]
		return (l.owed[w.uid] != nil || withdrawn) && !w.gone && !l.waitsForRuns(w)
	})
}
