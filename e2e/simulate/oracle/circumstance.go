package oracle

import (
	"slices"
	"time"
)

// The circumstances of a violation are part of its signature, so that what is known to be broken in some circumstances hides
// nothing else.

// keyLost is the circumstance that a digest key was lost.
const keyLost = "/key-lost"

// replacedUnder returns the circumstances in which a pod was replaced without cause.
func (o *Oracle) replacedUnder(p *pod, s *stamp) string {
	w := p.workload
	switch {
	case w.excluded || !s.eligible || !p.stamp.eligible:
		return "/excluded"
	case o.returnedBetween(w, p.stamp, s):
		return "/returned"
	case o.touchedBetween(w, p.stamp, s):
		return "/touched"
	}
	return ""
}

// restartedUnder returns the circumstances in which the program restarted a workload again after a stamp.
func (w *workload) restartedUnder(before *stamp) string {
	if w.ineligibleAt > before.version {
		return "/excluded"
	}
	return ""
}

// returnedBetween reports whether a listed object changed and changed back, and the workload was stamped in between.
func (o *Oracle) returnedBetween(w *workload, first, last *stamp) bool {
	return w.hasBetween(first, last) && slices.ContainsFunc(w.refs, func(r ref) bool {
		return len(o.contents.of(w.id.namespace, r).within(first.version, last.version)) > 0
	})
}

// missingUnder returns the circumstances in which the program restarted a workload although an object is missing.
func (o *Oracle) missingUnder(w *workload, s *stamp, r ref) string {
	edits := o.contents.of(w.id.namespace, r).within(0, s.version)
	since := edits[len(edits)-1].at
	if s.program && (s.arrivedAt.Sub(since) < justNow || !o.watched(w, since, s.arrivedAt)) {
		return "/just-deleted" // the program may not have heard of it when it asked for the restart
	}
	return ""
}

// justNow is how long ago something may have happened that the program has not heard of.
const justNow = 500 * time.Millisecond

// touchedBetween reports whether a listed object was written between two stamps, although its content is the same.
func (o *Oracle) touchedBetween(w *workload, first, last *stamp) bool {
	for _, r := range w.refs {
		if o.contents.of(w.id.namespace, r).touchedWithin(first.arrived, last.version) {
			return true
		}
	}
	return false
}

// lateUnder returns the circumstances in which a reload was late.
func (o *Oracle) lateUnder(w *workload, from, now time.Time) string {
	restless := o.restless(w, w.due.since, now)
	switch {
	case w.lostKeySince(w.last()):
		return keyLost
	case restless > 0 && restless < hammering:
		return "/hammered"
	case restless > 0:
		return "/constant-change"
	case o.blindWithin(w, now):
		return "/blind"
	case o.neighbourHindered(w, now):
		return "/neighbour"
	case from.After(w.due.since):
		return "/after-fault"
	}
	return ""
}

// hammering is the time between two writes of an object below which hardly a request is answered before the next write.
const hammering = 150 * time.Millisecond

// restless returns how much time is between two writes of an object that a workload lists and that was written all the time
// between two moments; zero if there is none.
func (o *Oracle) restless(w *workload, from, to time.Time) time.Duration {
	pause := 2 * max(o.slowest().settle, time.Second)
	for _, r := range w.refs {
		if h := o.contents.of(w.id.namespace, r); h != nil {
			if n, last := h.touchesFrom(from, pause); n > 0 && last.Sub(from) > to.Sub(from)/2 {
				return last.Sub(from) / time.Duration(n)
			}
		}
	}
	return 0
}

// touchesFrom counts the writes after a moment until there is a pause, and returns when the last of them was.
func (h *history) touchesFrom(from time.Time, pause time.Duration) (n int, last time.Time) {
	last = from
	for _, touch := range h.touched {
		if !touch.at.After(last) {
			continue
		}
		if touch.at.Sub(last) > pause {
			break
		}
		n, last = n+1, touch.at
	}
	return n, last
}

// blindWithin reports whether reading or watching was refused not long ago.
func (o *Oracle) blindWithin(w *workload, now time.Time) bool {
	for _, s := range o.faults.spans {
		if (s.kind == "rights" || s.kind == "watch-refused") && o.touches(s, w) && (s.open || now.Sub(s.to) < 2*longRecovery) {
			return true
		}
	}
	return false
}

// neighbourHindered reports whether a webhook of others is, or was until recently, in the way in another namespace.
func (o *Oracle) neighbourHindered(w *workload, now time.Time) bool {
	for _, s := range o.faults.spans {
		if s.kind == "namespace-webhook" && !o.touches(s, w) && (s.open || now.Sub(s.to) < recovery) {
			return true
		}
	}
	return false
}

// soon is how soon after a reload the next one may hide it.
const soon = 10 * time.Second

// missedUnder returns the circumstances in which the Event of a reload is missing.
func (o *Oracle) missedUnder(workloads ...*workload) string {
	if !o.faults.never() {
		return "/after-fault"
	}
	for _, w := range workloads {
		if w.story.overtaken {
			return "/overtaken"
		}
		if w.story.cramped {
			return "/no-space"
		}
	}
	return ""
}

// doubledUnder returns the circumstances in which a reload is reported twice.
func (o *Oracle) doubledUnder(workloads ...*workload) string {
	for _, w := range workloads {
		if w.story.returned || w.fumbled > 0 {
			return "/marks-back"
		}
	}
	if slices.ContainsFunc(o.faults.spans, func(s *span) bool { return s.kind == "clock" }) {
		return "/clock"
	}
	if !o.faults.never() {
		return "/after-fault"
	}
	return ""
}

// busyUnder returns the circumstances in which the program works although nothing changes.
func (o *Oracle) busyUnder() string {
	for _, w := range o.all {
		if slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.lost }) {
			return keyLost
		}
	}
	return ""
}
