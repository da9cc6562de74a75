package oracle

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// writesDenied is the kind of a fault that withdraws a permission to write: to patch workloads of a resource, to create Events, or to
	// renew the lease.
	writesDenied = "writes-denied"
	// eventsResource is the resource of Events.
	eventsResource = "events"
	// dueReloads is the metric that counts the workloads whose reload is due.
	dueReloads = "pod_reloader_due_reloads"
)

// deniesWorkloads reports whether a fault keeps the program from writing the workloads of a resource, and from nothing else.
func (s *span) deniesWorkloads() bool {
	return s.kind == writesDenied && world.TemplatePath(s.scope) != nil
}

// deniedLaw is the law "visible" for permissions to write.
type deniedLaw struct {
	*ledger
	passive
}

// surelyDenied reports whether a reload of a workload is due that fails since a permission is missing, and the program has had the time
// to say so.
func (l *deniedLaw) surelyDenied(w *workload, now time.Time) (since time.Time, is bool) {
	if w.gone || w.due.since.IsZero() {
		return time.Time{}, false
	}
	since, denied := l.deniedSince(w)
	if !denied {
		return time.Time{}, false
	}
	calm, known := l.calmAfter(w, l.ledSince(), (*span).deniesWorkloads)
	allowed, written := l.eventsAllowedSince()
	if !known || !written {
		return time.Time{}, false
	}
	from := l.excuse(w, later(later(w.due.since, since), later(later(calm, allowed), l.leaderSince)))
	return since, now.Sub(from) > l.promptBound()+warnEvery && !l.disturbedBesides(now)
}

// denied returns the workloads whose reload surely fails since a permission is missing.
func (l *deniedLaw) denied(now time.Time) (all []*workload) {
	for _, w := range l.all {
		if _, is := l.surelyDenied(w, now); is {
			all = append(all, w)
		}
	}
	return all
}

// watch is the law "visible" for permissions to write: a reload that is due and fails has a Warning Event.
func (l *deniedLaw) watch(w *workload, now time.Time) {
	if w.due.since.IsZero() || w.due.refused {
		return
	}
	since, is := l.surelyDenied(w, now)
	if !is {
		return
	}
	w.due.refused = true
	l.count("denied reloads judged")
	said := l.events.failed[w.uid]
	if w.id.plural == "cronjobs" {
		said = l.events.warned[w.uid] // there is more that may fail
	}
	if said.Before(since) {
		l.violate(now, broken{"visible", w.id.String(), "denied"},
			"a reload is due since %s, and the permission to write the workload is withdrawn since %s, but until %s no Warning Event says so",
			l.when(w.due.since), l.when(since), l.when(now))
	}
}

// scraped is the law "visible" for the metric of the reloads that are due.
func (l *deniedLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	if !l.leads(client) || !l.faults.up[client] || l.faults.out(client) {
		return
	}
	denied := slices.DeleteFunc(l.denied(at), func(w *workload) bool { return l.handledElsewhere(w, client) })
	if len(denied) == 0 {
		return
	}
	l.count("metrics of denied reloads judged")
	if value, found := gauge(families[dueReloads]); !found || int(value) < len(denied) {
		l.violate(at, broken{"visible", client, "due"}, "%s is %v at %s, but the reload of %s is due since %s, and %d such are",
			dueReloads, value, l.when(at), denied[0].id, l.when(denied[0].due.since), len(denied))
	}
}

// ask returns a workload whose reload surely fails; false if there is none.
func (l *deniedLaw) ask(now time.Time) (Question, bool) {
	denied := l.denied(now)
	if len(denied) == 0 {
		return Question{}, false
	}
	return Question{Workload: keyOf(denied[0]), Asked: now, client: l.leader, denied: denied[0].due.since}, true
}

// judgeWhy is the law "visible" for `pod-reloader why`: it prints why a reload fails. One that was made meanwhile is not judged.
func (l *deniedLaw) judgeWhy(q Question, printed string, at time.Time) {
	w := l.workloads[idOf(q.Workload)]
	if w == nil || !w.due.since.Equal(q.denied) || q.client != l.leader {
		return
	}
	if _, is := l.surelyDenied(w, at); !is {
		return
	}
	l.count("explanations of denied reloads judged")
	if !slices.ContainsFunc(strings.Split(printed, "\n"), func(line string) bool { return strings.HasPrefix(line, "Warning ") }) {
		l.violate(at, broken{"visible", w.id.String(), "denied-why"},
			"a reload is due since %s and fails, but what why prints at %s does not say so:\n%s",
			l.when(q.denied), l.when(at), printed)
	}
}
