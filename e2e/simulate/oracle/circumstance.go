package oracle

import (
	"slices"
	"time"
)

// The circumstances of a violation are part of its signature, so that what is known to be broken in some circumstances hides
// nothing else.

// keyLost is the circumstance that a digest key was lost.
const keyLost = "/key-lost"

// restartedUnder returns the circumstances in which the program restarted a workload again after a stamp.
func (w *workload) restartedUnder(before *stamp) string {
	if w.ineligibleAt > before.version {
		return "/excluded"
	}
	return ""
}

// justNow is how long ago something may have happened that the program has not heard of.
const justNow = 500 * time.Millisecond

// hammering is the time between two writes of an object below which hardly a request is answered before the next write.
const hammering = 150 * time.Millisecond

// restless returns how much time is between two writes of an object that a workload lists and that was written all the time
// between two moments; zero if there is none.
func (l *configLog) restless(w *workload, from, to time.Time) time.Duration {
	pause := 2 * max(l.slowest().settle, time.Second)
	for _, r := range w.refs {
		if h := l.contents.of(w.id.namespace, r); h != nil {
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

// soon is how soon after a reload the next one may hide it.
const soon = 10 * time.Second

// missedUnder returns the circumstances in which the Event of a reload is missing.
func (l *faultLog) missedUnder(workloads ...*workload) string {
	if !l.faults.never() {
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
func (l *faultLog) doubledUnder(workloads ...*workload) string {
	for _, w := range workloads {
		if w.story.returned || w.lastHandEdit > 0 {
			return "/annotations-back"
		}
	}
	if slices.ContainsFunc(l.faults.spans, func(s *span) bool { return s.kind == "clock" }) {
		return "/clock"
	}
	if !l.faults.never() {
		return "/after-fault"
	}
	return ""
}
