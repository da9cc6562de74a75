package oracle

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	// writesDenied is the kind of a fault that withdraws a right to write: to patch workloads of a resource, to create Events, or to renew
	// the lease.
	writesDenied = "writes-denied"
	// eventsResource is the resource of Events.
	eventsResource = "events"
	// dueReloads is the metric that counts the workloads whose reload is due.
	dueReloads = "pod_reloader_due_reloads"
)

// deniesWorkloads reports whether a fault keeps the program from writing the workloads of a resource, and from nothing else.
func (s *span) deniesWorkloads() bool { return s.kind == writesDenied && templatePath(s.scope) != nil }

// eventsAllowedSince returns since when the program has had the right to create Events for so long that those of before are written, too.
// It is not known while the right is withdrawn.
func (o *Oracle) eventsAllowedSince() (since time.Time, known bool) {
	for _, s := range o.faults.spans {
		if s.kind != writesDenied || s.scope != eventsResource {
			continue
		}
		if s.open {
			return time.Time{}, false
		}
		since = later(since, s.to.Add(s.recovery()))
	}
	return since, true
}

// deniedSince returns since when the right to write a workload is withdrawn, in times without it that follow one another so soon that the
// program need not have noticed the gap; false if it is not now.
func (o *Oracle) deniedSince(w *workload) (since time.Time, denied bool) {
	for _, s := range slices.Backward(o.faults.spans) {
		switch {
		case !s.deniesWorkloads() || s.scope != w.id.plural:
		case s.open, denied && s.to.Add(recovery).After(since):
			since, denied = s.from, true
		}
	}
	return since, denied
}

// surelyDenied reports whether a reload of a workload is due that fails since a right is missing, and the program has had the time to say so.
func (o *Oracle) surelyDenied(w *workload, now time.Time) (since time.Time, is bool) {
	if w.gone || w.due.since.IsZero() {
		return time.Time{}, false
	}
	since, denied := o.deniedSince(w)
	if !denied {
		return time.Time{}, false
	}
	calm, known := o.calmAfter(w, o.ledSince(), (*span).deniesWorkloads)
	allowed, written := o.eventsAllowedSince()
	if !known || !written {
		return time.Time{}, false
	}
	from := o.excuse(w, later(later(w.due.since, since), later(later(calm, allowed), o.leaderSince)))
	return since, now.Sub(from) > o.promptBound(w)+warnEvery && !o.disturbedBesides(now)
}

// denied returns the workloads whose reload surely fails since a right is missing.
func (o *Oracle) denied(now time.Time) (all []*workload) {
	for _, w := range o.all {
		if _, is := o.surelyDenied(w, now); is {
			all = append(all, w)
		}
	}
	return all
}

// judgeDenied is the law "visible" for rights to write: a reload that is due and fails has a Warning Event.
func (o *Oracle) judgeDenied(w *workload, now time.Time) {
	if w.due.since.IsZero() || w.due.refused {
		return
	}
	since, is := o.surelyDenied(w, now)
	if !is {
		return
	}
	w.due.refused = true
	o.count("denied reloads judged")
	said := o.events.failed[w.uid]
	if w.id.plural == "cronjobs" {
		said = o.events.warned[w.uid] // there is more that may fail
	}
	if said.Before(since) {
		o.violate(now, broken{"visible", w.id.String(), "denied"}, "a reload is due since %s, and the right to write the workload is withdrawn since %s, but until %s no Warning Event says so",
			o.when(w.due.since), o.when(since), o.when(now))
	}
}

// judgeDeniedMetric is the law "visible" for the metric of the reloads that are due.
func (o *Oracle) judgeDeniedMetric(client string, families map[string]*dto.MetricFamily, at time.Time) {
	if client != o.leader || !o.faults.up[client] || o.faults.out(client) {
		return
	}
	denied := o.denied(at)
	if len(denied) == 0 {
		return
	}
	o.count("metrics of denied reloads judged")
	if value, found := gauge(families[dueReloads]); !found || int(value) < len(denied) {
		o.violate(at, broken{"visible", client, "due"}, "%s is %v at %s, but the reload of %s is due since %s, and %d such are",
			dueReloads, value, o.when(at), denied[0].id, o.when(denied[0].due.since), len(denied))
	}
}

// judgeDeniedWhy is the law "visible" for `pod-reloader why`: it prints why a reload fails. One that was made meanwhile is not judged.
func (o *Oracle) judgeDeniedWhy(q Question, printed string, at time.Time) {
	w := o.workloads[idOf(q.Workload)]
	if w == nil || !w.due.since.Equal(q.denied) || q.client != o.leader {
		return
	}
	if _, is := o.surelyDenied(w, at); !is {
		return
	}
	o.count("explanations of denied reloads judged")
	if !slices.ContainsFunc(strings.Split(printed, "\n"), func(line string) bool { return strings.HasPrefix(line, "Warning ") }) {
		o.violate(at, broken{"visible", w.id.String(), "denied-why"}, "a reload is due since %s and fails, but what why prints at %s does not say so:\n%s",
			o.when(q.denied), o.when(at), printed)
	}
}
