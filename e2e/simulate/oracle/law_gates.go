package oracle

import (
	"time"
)

// gatesLaw is the law "gates" for restarts: the program waits until contents are quiet, and between two restarts of a workload.
type gatesLaw struct {
	*ledger
	passive
}

func (l *gatesLaw) stamped(r restamp) {
	if !r.byProgram() || l.faults.clocksWrong(r.stamp.at) {
		return
	}
	gates := l.timingOf(r.stamp.call.Client)
	l.judgeRefractory(r.workload, r.stamp, gates.refractory)
	l.judgeSettle(r.workload, r.before, r.stamp, gates)
}

// almost returns almost all of a duration: clocks are read at slightly different moments.
func almost(d time.Duration) time.Duration { return d - d/100 }

// judgeRefractory compares with the program's restart before, unless a user's request came in between.
func (l *gatesLaw) judgeRefractory(w *workload, s *stamp, refractory time.Duration) {
	if len(w.stamps) < 2 || refractory == 0 {
		return
	}
	before := w.stamps[len(w.stamps)-2]
	if !before.program || w.lastHandEdit > before.version || w.story.unannotatedAt >= before.version ||
		len(w.stamps) > 2 && before.managed == w.stamps[len(w.stamps)-3].managed && !before.isRestart() {
		return
	}
	l.count("refractory judged")
	if gap := s.at.Sub(before.arrivedAt); gap < almost(refractory) {
		l.violate(s.at, broken{"gates", w.id.String(), "refractory" + w.restartedUnder(before)},
			"the program restarted it at %s and at %s, %s apart: at least %s are promised", l.when(before.at), l.when(s.at), gap, refractory)
	}
}

// judgeSettle compares with the changes since the stamp before. The program may have read a content that it had not heard of
// yet, after the settle time was over, so that a late change is judged only if it is the first one.
func (l *gatesLaw) judgeSettle(w *workload, before, s *stamp, gates timing) {
	if gates.settle == 0 || w.uncertain(before) {
		return
	}
	first, last := l.changesBetween(w, l.seenUntil(w, before), s.arrived)
	if first.at.IsZero() || !l.heardOf(w, before, s, first) {
		return
	}
	l.count("settle judged")
	sinceFirst, sinceLast := s.arrivedAt.Sub(first.at), s.arrivedAt.Sub(last.at)
	tooSoon := sinceFirst < almost(gates.settle) || amongChanges(sinceLast, gates) && l.watched(w, first.at, s.arrivedAt)
	if !tooSoon || s.arrivedAt.Sub(l.firstTouch(w, l.actedUntil(w, before), first.at)) >= almost(gates.settleMax) {
		return
	}
	l.violate(s.at, broken{"gates", w.id.String(), "settle"},
		"the program asked for a restart at %s, %s after the last and %s after the first change: settle is %s, settle-max %s",
		l.when(s.arrivedAt), sinceLast, sinceFirst, gates.settle, gates.settleMax)
}

// heardOf reports whether the leader knew of the first change when it happened: a program that is blind does not know of a
// change from which on it should wait. What becomes of the other replicas does not matter.
func (l *gatesLaw) heardOf(w *workload, before, s *stamp, first edit) bool {
	t := &l.faults
	calm, known := l.calmAfter(w, l.ledSince(), func(*span) bool { return false })
	leader := s.call.Client
	well := known && !calm.After(first.at) && t.wellSince(leader, first.at.Add(-warmUp)) && !t.since[leader].Add(warmUp).After(first.at)
	return (well && l.leads(leader) || l.healthy(w, first.at) && !t.started.After(first.at)) &&
		!w.changed.After(before.at) && !l.leaderSince.After(first.at)
}

// amongChanges reports whether a change was so long ago that the program had heard of it, and so short that it should wait.
func amongChanges(sinceLast time.Duration, gates timing) bool {
	return sinceLast >= max(gates.settle/2, slowAfter) && sinceLast < almost(gates.settle)
}

// seenUntil returns the version of the last change that began no settle time for a restart after a stamp. A release that nothing stamps
// ends none that has begun: the program acts on the change before it only later.
func (l *gatesLaw) seenUntil(w *workload, s *stamp) int64 {
	if l.options.Direct && !s.program {
		return w.stampedSince(s)
	}
	return s.arrived
}

// actedUntil returns the version of the last write that a stamp surely acted on.
func (l *gatesLaw) actedUntil(w *workload, s *stamp) int64 {
	until := w.stampedSince(s)
	if s.program && s.direct {
		until = min(until, l.versionAt(s.arrivedAt.Add(-readBefore)))
	}
	return until
}

// firstTouch returns when one of the listed objects was written first after a version, at the latest at the given time. A write
// that changes no content begins the settle time, too: the program knows what it was only when the time is over. A release that is
// not stamped acts on none of them.
func (l *gatesLaw) firstTouch(w *workload, from int64, latest time.Time) time.Time {
	for _, r := range w.refs {
		h := l.contents.of(w.id.namespace, r)
		if h == nil {
			continue
		}
		if i := h.firstTouch(from); i < len(h.touched) && h.touched[i].at.Before(latest) {
			latest = h.touched[i].at
		}
	}
	return latest
}

// changesBetween returns the first and the last change of what a workload lists, as far as the program surely sees them.
func (l *gatesLaw) changesBetween(w *workload, from, to int64) (first, last edit) {
	for _, r := range w.refs {
		h := l.contents.of(w.id.namespace, r)
		for _, e := range lasting(r, h.at(from), h.within(from, to)) {
			if first.at.IsZero() || e.version < first.version {
				first = e
			}
			if e.version > last.version {
				last = e
			}
		}
	}
	return first, last
}
