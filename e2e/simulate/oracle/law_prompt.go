package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// promptLaw is the law "prompt" for reloads.
type promptLaw struct {
	*ledger
	passive
}

func (l *promptLaw) storing(c world.Commit) {
	if w := l.workloads[idOf(c.Key)]; w != nil {
		l.watch(w, c.At)
	}
}

func (l *promptLaw) owes(time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return !w.gone && !w.due.since.IsZero() })
}

// watch is the law "prompt": a change leads to a new template in settle-max + refractory and some seconds, or, where the template
// has no space for that, to an Event. An outage of one replica delays it by a hand-over.
func (l *promptLaw) watch(w *workload, now time.Time) {
	if w.due.since.IsZero() || w.due.reported {
		return
	}
	bound := l.promptBound()
	calm, known := l.calmAfter(w, l.ledSince(), func(*span) bool { return false })
	if !known {
		calm, known = l.calmButBlind(w)
		bound += blindBound
	}
	if !known {
		return
	}
	from := later(w.due.since, calm)
	from = l.excuse(w, from)
	bound += l.faults.waitsForSlot(w.id.namespace, now)
	if now.Sub(from) <= bound {
		return
	}
	w.due.reported = true
	if l.saysFull(w) {
		l.count("reloads excused: no space on the template")
		return
	}
	signature := w.due.how + l.lateUnder(w, from, now)
	l.violate(now, broken{"prompt", w.id.String(), signature},
		"%s %s at %s, but the pod template is the one of %s; the reload was due until %s",
		w.due.of, w.due.how, l.when(w.due.since), l.when(w.last().at), l.when(from.Add(bound)))
}

// blindBound is how much longer a reload may take while a watch of configuration fails and single objects can be read.
const blindBound = 4 * time.Minute

// calmButBlind is calmSince where nothing fails but lists and watches of configuration: that delays reloads, and prevents none.
func (l *promptLaw) calmButBlind(w *workload) (since time.Time, known bool) {
	var blind time.Time
	since, known = l.calmAfter(w, l.ledSince(), func(s *span) bool {
		is := s.kind == "watch-refused" && isConfig(s.scope) && s.open
		if is && l.touches(s, w) {
			blind = later(blind, s.from)
		}
		return is
	})
	if known && !blind.IsZero() {
		l.count("blind workloads looked at")
	}
	return later(since, blind), known && !blind.IsZero()
}

// lateUnder returns the circumstances in which a reload was late.
func (l *promptLaw) lateUnder(w *workload, from, now time.Time) string {
	restless := l.restless(w, w.due.since, now)
	switch {
	case w.lostKeySince(w.last()):
		return keyLost
	case restless > 0 && restless < hammering:
		return "/hammered"
	case restless > 0:
		return "/constant-change"
	case l.blindWithin(w, now):
		return "/blind"
	case l.neighbourHindered(w, now):
		return "/neighbour"
	case from.After(w.due.since):
		return "/after-fault"
	}
	return ""
}

// blindWithin reports whether reading or watching was refused not long ago.
func (l *promptLaw) blindWithin(w *workload, now time.Time) bool {
	for _, s := range l.faults.spans {
		if (s.kind == "permissions" || s.kind == "watch-refused") && l.touches(s, w) && (s.open || now.Sub(s.to) < 2*longRecovery) {
			return true
		}
	}
	return false
}

// neighbourHindered reports whether writes elsewhere are, or were until recently, hindered: by a webhook in another namespace, or because
// writes of another resource get no answer.
func (l *promptLaw) neighbourHindered(w *workload, now time.Time) bool {
	for _, s := range l.faults.spans {
		if (s.kind == "namespace-webhook" || s.kind == writesHang) && !l.touches(s, w) && (s.open || now.Sub(s.to) < recovery) {
			return true
		}
	}
	return false
}
