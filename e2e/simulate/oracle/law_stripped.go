package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// strippedLaw has the laws "visible", "explained", "hot-loop" and "kept" where another mutating webhook removes managed annotations: an Event
// says what is not stored, and the program does not fight.
type strippedLaw struct {
	*ledger
	passive

	states map[*workload]*stripped
}

// stripped is what is known of a workload while annotations are removed.
type stripped struct {
	// writes are the last ones of the program, restarts the number of its restarts, both since something else happened to the workload.
	writes   []time.Time
	restarts int
	// unrecorded is since when there is no record, unexplained when a reload was made whose last-reload is not stored; zero if that is judged.
	unrecorded, unexplained time.Time
	// reported is how many reloads Events reported before that one.
	reported int
	// judged is the last change of a content whose lost stamp was judged.
	judged time.Time
}

const (
	// restartsStripped is how many restarts in a row may have no other cause than annotations that are removed: the removal of the stamp
	// itself changes the template.
	restartsStripped = 2
	// mostStripped is how many writes there may be within contestedWithin: each attempt of a reload has some, and another process begins anew.
	mostStripped = 20
	// untilSaid is how long the program may take to say what is not stored, besides the gates: it tries several times before.
	untilSaid = warnEvery + 30*time.Second
	// warnAgain is how long the same Warning Event about what persists is not repeated at most.
	warnAgain = 90 * time.Minute
)

func newStrippedLaw(l *ledger) *strippedLaw {
	return &strippedLaw{ledger: l, states: map[*workload]*stripped{}}
}

func (l *strippedLaw) of(w *workload) *stripped {
	if l.states[w] == nil {
		l.states[w] = &stripped{}
	}
	return l.states[w]
}

// strippedSince returns since when a webhook removes annotations of a workload and nothing else disturbs the program, if it does now.
func (l *strippedLaw) strippedSince(w *workload, now time.Time, kinds ...string) (since time.Time, is bool) {
	since, is = l.removedSince(w, kinds)
	calm, known := l.calmAfter(w, l.faults.restored(), (*span).strips)
	if !is || !known || w.gone || !w.eligible || l.disturbedBesides(now) {
		return time.Time{}, false
	}
	allowed, written := l.eventsAllowedSince()
	return later(later(since, later(calm, w.eligibleSince)), later(allowed, l.leaderSince)), written
}

// removedSince returns since when a webhook removes annotations of a workload, if it does now: those of some kinds, or any if none is given.
func (l *strippedLaw) removedSince(w *workload, kinds []string) (since time.Time, is bool) {
	for _, s := range l.faults.spans {
		if s.open && s.stripsOf(w) && (len(kinds) == 0 && s.strips() || slices.Contains(kinds, s.kind)) && (!is || s.from.Before(since)) {
			since, is = s.from, true
		}
	}
	return since, is
}

// forget forgets what the program has done, as something else has happened to the workload.
func (s *stripped) forget() { s.writes, s.restarts = nil, 0 }

// stored forgets what was counted when a user writes a workload or an object that it tracks, and notes since when there is no record.
func (l *strippedLaw) stored(c world.Commit) {
	key := idOf(c.Key)
	if isConfig(key.plural) || isReferent(key.plural) || key.plural == "namespaces" {
		l.forgetBy(key)
		return
	}
	w := l.workloads[key]
	if w == nil || c.New == nil {
		return
	}
	s := l.of(w)
	if c.Call != nil && !l.isProgram(c.Call) {
		s.forget()
	}
	switch {
	case l.recordOf(c.New) != "":
		s.unrecorded = time.Time{}
	case s.unrecorded.IsZero():
		s.unrecorded = c.At
	}
}

// forgetBy forgets what was counted for the workloads that a config object, a referent or a namespace may concern.
func (l *strippedLaw) forgetBy(key id) {
	for w, s := range l.states {
		if w.id.namespace == key.namespace || key.plural == "namespaces" || isReferent(key.plural) {
			s.forget()
		}
	}
}

// request is the law "hot-loop": the pauses between writes that store nothing grow.
func (l *strippedLaw) request(call *world.Call) {
	w := l.workloads[idOf(call.Key)]
	if w == nil || !call.Write() || !l.isProgram(call) || l.timingOf(call.Client).refractory == 0 {
		return
	}
	since, is := l.strippedSince(w, call.Arrived)
	s := l.of(w)
	if !is {
		s.forget()
		return
	}
	l.count("writes beside a stripping webhook judged")
	within := func(at time.Time) bool { return call.Arrived.Sub(at) <= contestedWithin && !at.Before(since) }
	s.writes = append(slices.DeleteFunc(s.writes, func(at time.Time) bool { return !within(at) }), call.Arrived)
	if len(s.writes) == w.byBoth(mostStripped)+1 {
		l.violate(call.Arrived, broken{"hot-loop", w.id.String(), "stripped"},
			"another webhook removes annotations from each write, and the program wrote it %d times within %s", len(s.writes), contestedWithin)
	}
}

// stamped is the law "kept": annotations that are removed restart the pods once, not again and again.
func (l *strippedLaw) stamped(r restamp) {
	w := r.workload
	if !r.byProgram() {
		return
	}
	s := l.of(w)
	if value := l.options.Prefix + reloadAnnotation; world.Text(world.Annotations(r.commit.New), value) == "" {
		if _, is := l.strippedSince(w, r.commit.At, stripsReload); is && s.unexplained.IsZero() {
			s.unexplained, s.reported = r.commit.At, l.reloadsReported(w)
		}
	}
	if _, is := l.strippedSince(w, r.commit.At); !is {
		return
	}
	s.restarts++
	l.count("restarts beside a stripping webhook judged")
	if s.restarts > restartsStripped {
		l.violate(r.commit.At, broken{"kept", w.id.String(), "stripped"},
			"another webhook removes annotations from each write, and the program changed the template %d times, until %s, while nothing else changed",
			s.restarts, l.when(r.commit.At))
	}
}

// watch is the law "visible": a Warning Event says what is not stored.
func (l *strippedLaw) watch(w *workload, now time.Time) {
	s := l.states[w]
	if s == nil {
		return
	}
	l.watchReload(w, s, now)
	l.watchRecord(w, s, now)
	l.watchStamp(w, s, now)
}

// said reports whether a Warning Event about a workload has one of some reasons, not so long ago that it would have been repeated.
func (l *strippedLaw) said(w *workload, now time.Time, reasons ...string) bool {
	return slices.ContainsFunc(l.events.warnings, func(one warning) bool {
		return one.about == w.uid && slices.Contains(reasons, one.reason) && now.Sub(one.at) < warnAgain
	})
}

// watchReload judges what is said of a reload whose last-reload is not stored. The leader that has made it reports it.
func (l *strippedLaw) watchReload(w *workload, s *stripped, now time.Time) {
	if s.unexplained.IsZero() || now.Sub(s.unexplained) < untilSaid {
		return
	}
	at := s.unexplained
	s.unexplained = time.Time{}
	since, is := l.strippedSince(w, now, stripsReload)
	if !is || since.After(at) {
		return
	}
	l.count("reloads without last-reload judged")
	if !l.said(w, now, "ReloadUnrecorded") {
		l.violate(now, broken{"visible", w.id.String(), "unrecorded-reload"},
			"it was restarted at %s, and another webhook has removed last-reload, but no Event says so", l.when(at))
	}
	if l.reloadsReported(w) <= s.reported {
		l.violate(now, broken{"explained", w.id.String(), "stripped"},
			"it was restarted at %s, and another webhook has removed last-reload, but until %s no Event reports the reload", l.when(at), l.when(now))
	}
}

// watchRecord judges what is said of a record that is not stored. Where a reload is due, and a webhook removes the stamp or the request as well,
// the Event about the stamp comes first.
func (l *strippedLaw) watchRecord(w *workload, s *stripped, now time.Time) {
	since, is := l.strippedSince(w, now, stripsRecord, stripsAll)
	if !is || s.unrecorded.IsZero() || len(w.refs) == 0 || l.held(w) {
		return
	}
	since = later(later(since, s.unrecorded), w.changed)
	if now.Sub(since) < untilSaid+l.promptBound() {
		return
	}
	s.unrecorded = now // it is judged again later
	l.count("removed records judged")
	reasons := []string{"AdoptionFailed", "RecordContested", "RecordTooLarge"}
	if l.stampsPrevented(w, since) {
		reasons = append(reasons, "StampLost")
	}
	if !l.said(w, now, reasons...) {
		l.violate(now, broken{"visible", w.id.String(), "removed-record"},
			"it has no record since %s as another webhook removes it, but until %s no Event says so", l.when(since), l.when(now))
	}
}

// watchStamp judges what is said of a stamp that is not stored: a content has changed, and the template is as it was.
func (l *strippedLaw) watchStamp(w *workload, s *stripped, now time.Time) {
	since, is := l.strippedSince(w, now, stripsStamp, stripsAll)
	last := w.last()
	if !is || last == nil || last.hashed() || l.held(w) || asksForRestarts(w.object) {
		return
	}
	for _, r := range w.refs {
		at, changed := l.surelyChanged(w, r, later(since, last.at))
		if !changed || !at.After(s.judged) || now.Sub(at) < untilSaid+l.promptBound() {
			continue
		}
		s.judged = at
		l.count("removed stamps judged")
		if !l.said(w, now, "StampLost", "ReloadFailed", "AdoptionFailed", "RecordContested") {
			l.violate(now, broken{"visible", w.id.String(), "removed-stamp"},
				"%s has changed at %s, and another webhook removes the stamp, but until %s no Event says so", r, l.when(at), l.when(now))
		}
		return
	}
}

// surelyChanged returns when an object was last modified after a moment.
func (l *strippedLaw) surelyChanged(w *workload, r ref, since time.Time) (at time.Time, changed bool) {
	h := l.contents.of(w.id.namespace, r)
	if isReferent(r.plural) || h == nil || len(h.edits) < 2 {
		return time.Time{}, false
	}
	last, before := h.edits[len(h.edits)-1], h.edits[len(h.edits)-2]
	modified := last.content != absent && before.content != absent && last.content != before.content
	return last.at, modified && last.at.After(since.Add(notice)) && l.versionAt(since) >= w.tracked[r]
}
