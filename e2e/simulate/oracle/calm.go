package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// faultLog has what may disturb the program: faults, slow requests, watches that are opened again, and who leads.
type faultLog struct {
	*rules
	*findings

	faults  timeline
	timings map[string]timing

	// leader is the replica that leads since a moment, predecessor the one that led its installation before.
	leader, predecessor string
	leaderSince         time.Time
	// leaders has the leader of each installation, by whether it is the second.
	leaders    map[bool]string
	namespaces map[string]*namespaceState
	// clients has those that are no replicas; rewatched is when a replica last opened a watch of a resource.
	clients   map[string]bool
	rewatched map[string]time.Time
	slow      slowness
	// jitter is how long a request of a user may be under way although nothing disturbs it.
	jitter time.Duration
}

func newFaultLog(r *rules, f *findings) *faultLog {
	return &faultLog{
		rules: r, findings: f, faults: newTimeline(r.options), leaders: map[bool]string{}, timings: map[string]timing{}, namespaces: map[string]*namespaceState{},
		clients: map[string]bool{}, rewatched: map[string]time.Time{},
	}
}

// namespaceState is what is known of a namespace.
type namespaceState struct {
	labels map[string]string
	ending bool
	// believed are labels that the program may take for the present ones after a restore.
	believed []map[string]string
}

// inEndingNamespace reports whether the namespace of a workload is being deleted.
func (l *faultLog) inEndingNamespace(w *workload) bool {
	namespace := l.namespaces[w.id.namespace]
	return namespace != nil && namespace.ending
}

// hear records a request.
func (l *faultLog) hear(call *world.Call) {
	if !l.isProgram(call) {
		l.clients[call.Client] = true
		return
	}
	l.faults.heard(call.Client, call.Arrived)
	l.faults.hang(call)
	l.slow.begin(call)
	if call.Verb == "watch" || call.Verb == "list" {
		l.rewatched[call.Key.Resource.Plural] = call.Arrived
	}
}

// touches reports whether a fault may concern a workload.
func (l *faultLog) touches(s *span, w *workload) bool {
	scope := s.scope
	switch {
	case s.strips():
		return s.stripsOf(w)
	case s.deniesWorkloads(), s.takesKind():
		return scope == w.id.plural
	case s.hangsWorkloads():
		return scope == w.id.plural || len(s.hung[w.id.namespace]) >= slots
	case s.kind == writesDenied && scope == eventsResource:
		return false
	}
	return scope == "" || l.options.Program(scope) || l.concerns(scope, w)
}

// concerns reports whether the scope of a fault, which is a namespace, an object or a client, may concern a workload.
func (l *faultLog) concerns(scope string, w *workload) bool {
	if name, ok := strings.CutPrefix(scope, "namespaces/"); ok {
		return name == w.id.namespace
	}
	if strings.Contains(scope, "/") {
		return scope == w.id.String() || w.listsObject(scope)
	}
	if _, known := l.namespaces[scope]; known {
		return scope == w.id.namespace
	}
	return !l.clients[scope]
}

// calmSince returns when the program works as usual for a workload, as far as faults are concerned, or has done so since. It is
// not known while a fault lasts.
func (l *faultLog) calmSince(w *workload) (since time.Time, known bool) {
	return l.calmAfter(w, l.faults.restored(), func(*span) bool { return false })
}

// calmAfter is calmSince but for some faults, where the replicas work as usual since a moment.
func (l *faultLog) calmAfter(w *workload, replicas time.Time, but func(*span) bool) (since time.Time, known bool) {
	t := &l.faults
	if t.begun.IsZero() || !t.working() {
		return time.Time{}, false
	}
	since = t.begun.Add(warmUp)
	if warm := t.led.Add(afterElection); !t.led.IsZero() && warm.Before(since) {
		since = warm
	}
	faults, known := l.undisturbedSince(w, but)
	return later(later(since, replicas), faults), known
}

// overSince returns since when no fault disturbs the program's work on a workload. It is not known while one lasts.
func (l *faultLog) overSince(w *workload) (since time.Time, known bool) {
	return l.overSinceBut(w, func(*span) bool { return false })
}

// overSinceBut is overSince but for some faults.
func (l *faultLog) overSinceBut(w *workload, but func(*span) bool) (since time.Time, known bool) {
	since, known = l.undisturbedSince(w, but)
	return later(since, l.faults.restored()), known
}

// undisturbedSince is overSinceBut for what is no outage of a replica.
func (l *faultLog) undisturbedSince(w *workload, but func(*span) bool) (since time.Time, known bool) {
	for _, s := range l.faults.spans {
		switch {
		case s.outage(), but(s), !l.touches(s, w):
		case s.open:
			return time.Time{}, false
		default:
			since = later(since, s.to.Add(s.recovery()))
		}
	}
	return since, true
}

// healthy reports whether nothing disturbed the program's work on a workload between two moments.
func (l *faultLog) healthy(w *workload, from time.Time) bool {
	since, known := l.calmSince(w)
	return known && !since.After(from)
}

// answering reports whether nothing disturbed the webhook's answers about a workload since a moment. It reads what is live:
// watches that deliver nothing do not matter, as long as the digest keys stay the same.
func (l *faultLog) answering(w *workload, from time.Time) bool {
	if w.keyChanged > 0 || l.faults.led.IsZero() || !l.faults.working() {
		return false
	}
	since, known := l.overSinceBut(w, func(s *span) bool { return s.kind == "watch-held" || s.deniesWorkloads() })
	return known && !later(since, l.faults.led.Add(afterElection)).After(from)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// slowest returns the gates of the process that may need the longest.
func (l *faultLog) slowest() timing {
	slowest := timing{l.options.Settle, l.options.SettleMax, l.options.Refractory}
	for _, t := range l.timings {
		slowest.settle = max(slowest.settle, t.settle)
		slowest.settleMax = max(slowest.settleMax, t.settleMax)
		slowest.refractory = max(slowest.refractory, t.refractory)
	}
	return slowest
}

func (l *faultLog) timingOf(client string) timing {
	if t, ok := l.timings[client]; ok {
		return t
	}
	return timing{l.options.Settle, l.options.SettleMax, l.options.Refractory}
}

// eventsAllowedSince returns since when the program has had the permission to create Events for so long that those that it could not create
// are written, too. It is not known while the permission is withdrawn.
func (l *faultLog) eventsAllowedSince() (since time.Time, known bool) {
	for _, s := range l.faults.spans {
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

// deniedSince returns since when the permission to write a workload is withdrawn, in times without it that follow one another so soon that
// the program need not have noticed the gap; false if it is not now.
func (l *faultLog) deniedSince(w *workload) (since time.Time, denied bool) {
	for _, s := range slices.Backward(l.faults.spans) {
		switch {
		case !s.deniesWorkloads() || s.scope != w.id.plural:
		case s.open, denied && s.to.Add(recovery).After(since):
			since, denied = s.from, true
		}
	}
	return since, denied
}

// watched reports whether the program surely heard of all changes since a moment without delay.
func (l *faultLog) watched(w *workload, since, now time.Time) bool {
	for _, plural := range []string{"configmaps", "secrets", filters, proxies} {
		if !l.rewatched[plural].Before(since) {
			return false
		}
	}
	return l.healthy(w, since) && !l.slow.during(w.id.namespace, since, now)
}

// promptBound is how long a reload may take that nothing disturbs.
func (l *faultLog) promptBound() time.Duration {
	gates := l.slowest()
	return max(gates.settle, gates.settleMax) + gates.refractory + l.options.Slack
}

// excuse returns the moment from which the time counts: writes by users of the same workload, slow requests, and watches that
// were opened anew, may delay a reload, if not for long.
func (l *faultLog) excuse(w *workload, from time.Time) time.Time {
	if w.acts[0].After(from) {
		from = earliest(w.acts[2], from.Add(2*l.promptBound()))
	}
	for _, plural := range []string{"configmaps", "secrets", filters, proxies, w.id.plural} {
		if again := l.rewatched[plural]; again.After(w.due.since) && again.Sub(w.due.since) < recovery {
			from = later(from, again)
		}
	}
	if slow := l.slow.last(w.id.namespace); slow.After(from) && slow.Sub(w.due.since) < 2*recovery {
		from = slow
	}
	return from
}

// couldSee reports whether the webhook surely saw a request that was refused.
func (l *faultLog) couldSee(w *workload, r world.Reply) bool {
	return !l.options.Direct && l.healthy(w, r.Call.Arrived) && !l.slow.during(w.id.namespace, r.Call.Arrived, r.At)
}

// disturbedBesides reports whether other faults may have kept the program from saying until now what it does not see: then the earlier
// Event may stand.
func (l *faultLog) disturbedBesides(at time.Time) bool {
	return slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		switch {
		case slices.Contains([]string{"permissions", "watch-refused", "watch-held", "webhook-away", "namespace-webhook", writesHang}, s.kind):
			return false // it is in the way of no Event
		case s.deniesWorkloads(), s.strips(), s.takesKind():
			return false
		case s.outage() && (s.open || s.coveredAtEnd):
			return s.from.Add(recovery + report).After(at)
		}
		return s.open || s.to.Add(s.recovery()+report).After(at)
	})
}

// recovered reports whether all faults have been over for long.
func (l *faultLog) recovered(at time.Time) bool {
	for _, s := range l.faults.spans {
		if !s.outage() && (s.open || at.Sub(s.to) < longRecovery) || s.outage() && at.Sub(s.from) < longRecovery {
			return false
		}
	}
	return l.faults.started.IsZero() || at.Sub(l.faults.started) >= longRecovery
}
