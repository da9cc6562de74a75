package oracle

import (
	"slices"
	"time"
)

// due is a reload that must come.
type due struct {
	// since is when it became due; zero if none is.
	since time.Time
	// of is the object that changed, how says how.
	of  ref
	how string
	// reported means that its lateness was reported, refused that it was judged what the program says of a right that is missing.
	reported, refused bool
}

// judgeDue looks whether a reload is due now.
func (o *Oracle) judgeDue(w *workload, now time.Time) {
	r, how := o.dueOf(w)
	waits := how != "" && o.waitsForRuns(w)
	if waits {
		w.waited = now
	}
	if how == "" || waits {
		w.due = due{}
		return
	}
	if s := w.last(); w.due.since.IsZero() || s.at.After(w.due.since) {
		w.due = due{since: now, of: r, how: how}
		o.count("reloads due")
	}
}

// dueOf returns an object that has surely changed since the stamp, and how; nothing if no reload is due for sure.
func (o *Oracle) dueOf(w *workload) (r ref, how string) {
	s := w.last()
	if !w.eligible || s == nil || o.held(w) {
		return ref{}, ""
	}
	for _, r := range w.refs {
		if o.referentHeld(w, r) {
			continue
		}
		now := o.contents.of(w.id.namespace, r).now()
		if o.believes(w, s, r, now) {
			continue
		}
		switch {
		case now == absent && !w.triggers[r].deleted:
			continue
		case now == absent:
			return r, "deleted"
		case o.believes(w, s, r, absent):
			return r, "created"
		}
		return r, "modified"
	}
	return ref{}, ""
}

// unrecordedWhileHeld reports whether a workload lacks the program's record, or had no room for it since its last stamp, and a custom
// resource is held: the hash alone cannot be compared without that one. It is a documented limit.
func (o *Oracle) unrecordedWhileHeld(w *workload) bool {
	s := w.last()
	lacks := text(annotationsOf(w.object), o.options.Prefix+recordMark) == ""
	return s != nil && (lacks || w.story.unrecorded >= s.version) && slices.ContainsFunc(w.refs, func(r ref) bool { return o.referentHeld(w, r) })
}

// held means that an object is absent that the pods need, or may need: the program may, and by default must, wait for it. So it must where
// nothing can be compared.
func (o *Oracle) held(w *workload) bool {
	if o.unrecordedWhileHeld(w) {
		return true
	}
	for _, r := range w.refs {
		if w.needs[r] == optional || w.needs[r] == required && o.options.ReloadMissingRequired {
			continue
		}
		if o.contents.of(w.id.namespace, r).now() == absent {
			return true
		}
	}
	return false
}

// judgePrompt is the law "prompt": a change leads to a new template in settle-max + refractory and some seconds, or, where the template
// has no room for that, to an Event. An outage of one replica delays it by a hand-over.
func (o *Oracle) judgePrompt(w *workload, now time.Time) {
	if w.due.since.IsZero() || w.due.reported {
		return
	}
	bound := o.promptBound(w)
	calm, known := o.calmAfter(w, o.ledSince(), func(*span) bool { return false })
	if !known {
		calm, known = o.calmButBlind(w)
		bound += blindBound
	}
	if !known {
		return
	}
	from := later(w.due.since, calm)
	from = o.excuse(w, from)
	if now.Sub(from) <= bound {
		return
	}
	w.due.reported = true
	if o.saysFull(w) {
		o.count("reloads excused: no room on the template")
		return
	}
	signature := w.due.how + o.lateUnder(w, from, now)
	o.violate(now, broken{"prompt", w.id.String(), signature}, "%s %s at %s, but the pod template is the one of %s; the reload was due until %s",
		w.due.of, w.due.how, o.when(w.due.since), o.when(w.last().at), o.when(from.Add(bound)))
}

// promptBound is how long a reload may take that nothing disturbs.
func (o *Oracle) promptBound(w *workload) time.Duration {
	gates := o.slowest()
	bound := max(gates.settle, gates.settleMax) + gates.refractory + o.options.Slack
	if w.due.since.Sub(w.waited) < notice {
		bound += runPause
	}
	return bound
}

// excuse returns the moment from which the time counts: writes by users of the same workload, slow requests, and watches that
// were opened anew, may delay a reload, if not for long.
func (o *Oracle) excuse(w *workload, from time.Time) time.Time {
	if w.acts[0].After(from) {
		from = w.acts[2]
	}
	for _, plural := range []string{"configmaps", "secrets", filters, proxies, w.id.plural} {
		if again := o.rewatched[plural]; again.After(w.due.since) && again.Sub(w.due.since) < recovery {
			from = later(from, again)
		}
	}
	if slow := o.slow.last(w.id.namespace); slow.After(from) && slow.Sub(w.due.since) < 2*recovery {
		from = slow
	}
	return from
}

// blindBound is how much longer a reload may take while a watch of configuration fails and single objects can be read.
const blindBound = 4 * time.Minute

// calmButBlind is calmSince where nothing fails but lists and watches of configuration: that delays reloads, and prevents none.
func (o *Oracle) calmButBlind(w *workload) (since time.Time, known bool) {
	var blind time.Time
	since, known = o.calmAfter(w, o.ledSince(), func(s *span) bool {
		is := s.kind == "watch-refused" && isConfig(s.scope) && s.open
		if is && o.touches(s, w) {
			blind = later(blind, s.from)
		}
		return is
	})
	if known && !blind.IsZero() {
		o.count("blind workloads looked at")
	}
	return later(since, blind), known && !blind.IsZero()
}
