package oracle

import (
	"sort"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Fault is the begin or the end of a fault.
type Fault struct {
	At time.Time
	// Kind says what fails. These are known: "down", "killed", "stopped", "frozen" (a replica does not work), "clock",
	// "rights", "denied", "watch-refused", "watch-held", "writes-hang", "writes-denied", "namespace-webhook"; every other one is something that may disturb all of
	// the program within Scope.
	Kind string
	// Scope is what is concerned: a client ("replica-0" means its processes "replica-0.1", too), a namespace ("shop" or
	// "namespaces/shop"), an object ("deployments/shop/cart"), or a resource ("secrets"). Empty means everything, and so does
	// a name that is not known.
	Scope string
	Begin bool
}

const (
	// recovery is how long the program may take to work as usual after a fault: leases run out, attempts are repeated.
	recovery = time.Minute
	// longRecovery is the same after denials, which are repeated ever more rarely.
	longRecovery = 6 * time.Minute
	// blindRecovery is the same after watches failed: informers of client-go pause for up to a minute.
	blindRecovery = 2 * time.Minute
	// hungRecovery is the same after writes that never have an answer: the program gives each up after 10 s.
	hungRecovery = 20 * time.Second
	// clockRecovery is the same after a clock was wrong, by ten minutes at most: what was noted while it was ahead lies in the
	// future then. The simulated clock has no monotonic reading, which spares a real process this.
	clockRecovery = 11 * time.Minute
	// warmUp is how long the first replicas may take to start, afterElection the first leader to begin its work.
	warmUp, afterElection = 20 * time.Second, 5 * time.Second
)

// span is a fault in time.
type span struct {
	kind, scope string
	from, to    time.Time
	open        bool
	// covered means that another replica worked when it began, coveredAtEnd that one did when it ended.
	covered, coveredAtEnd bool
}

func (s *span) recovery() time.Duration {
	switch s.kind {
	case "denied", "namespace-webhook":
		return longRecovery
	case "rights", "watch-refused":
		return blindRecovery
	case "writes-hang":
		return hungRecovery
	case "clock":
		return clockRecovery
	}
	return recovery
}

// outage means that the fault is one replica's that does not work: the others go on.
func (s *span) outage() bool {
	switch s.kind {
	case "down", "killed", "stopped", "frozen":
		return true
	}
	return false
}

// timeline has all faults.
type timeline struct {
	spans []*span
	// up has the processes of the program that were heard of; true for those that run.
	up map[string]bool
	// begun is when the program was first heard of, led when one of the replicas became the leader first; zero before.
	begun, led time.Time
	// since is when a process that was heard of started, ended when it did.
	since, ended map[string]time.Time
	// started is when the last process started or ended by itself, alone when one did while no other replica worked.
	started, alone time.Time
}

func newTimeline() timeline {
	return timeline{up: map[string]bool{}, since: map[string]time.Time{}, ended: map[string]time.Time{}}
}

// Fault takes note of a fault.
func (o *Oracle) Fault(f Fault) {
	o.advance(f.At)
	t := &o.faults
	if f.Kind == "down" && o.options.Program(f.Scope) {
		if again := t.process(f); again {
			return
		}
	}
	if f.Begin {
		t.spans = append(t.spans, &span{kind: f.Kind, scope: f.Scope, from: f.At, open: true, covered: t.covered(f.Scope, f.At)})
		o.count("faults")
		return
	}
	for _, s := range t.spans {
		if s.open && s.kind == f.Kind && s.scope == f.Scope {
			s.open, s.to, s.coveredAtEnd = false, f.At, t.covered(f.Scope, f.At)
			return
		}
	}
}

// process takes note of a process that starts or ends. What is killed may be reported again when the process is gone.
func (t *timeline) process(f Fault) (again bool) {
	wasUp, known := t.up[f.Scope]
	again = f.Begin && known && !wasUp
	t.up[f.Scope] = !f.Begin
	if !f.Begin {
		t.since[f.Scope] = f.At
	} else if !again {
		t.ended[f.Scope] = f.At
	}
	if t.begun.IsZero() || f.At.Sub(t.begun) <= warmUp {
		return again
	}
	t.started = f.At
	if !again && !t.covered(f.Scope, f.At) {
		t.alone = f.At
	}
	return again
}

// Leader takes note of a replica that leads from now on.
func (o *Oracle) Leader(client string, at time.Time) {
	o.advance(at)
	if client != o.leader {
		o.lead(client, at)
	}
}

func (o *Oracle) lead(client string, at time.Time) {
	if o.leader != "" && client != o.leader {
		o.inheritStories()
	}
	o.leader, o.leaderSince = client, at
	if o.faults.led.IsZero() {
		o.faults.led = at
	}
}

// heard takes note of a sign of life of a process.
func (t *timeline) heard(client string, at time.Time) {
	if _, known := t.up[client]; !known {
		t.up[client], t.since[client] = true, at
	}
	if t.begun.IsZero() {
		t.begun = at
	}
}

// working reports whether a replica works now.
func (t *timeline) working() bool {
	names := make([]string, 0, len(t.up))
	for name, up := range t.up {
		if up {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if !t.out(name) {
			return true
		}
	}
	return false
}

// out reports whether a fault keeps a process from working.
func (t *timeline) out(process string) bool {
	for _, s := range t.spans {
		if s.open && s.outage() && s.kind != "down" && isProcessOf(process, s.scope) {
			return true
		}
	}
	return false
}

func isProcessOf(process, replica string) bool {
	return process == replica || strings.HasPrefix(process, replica+".")
}

// touches reports whether a fault may concern a workload.
func (o *Oracle) touches(s *span, w *workload) bool {
	scope := s.scope
	switch {
	case s.kind == writesDenied && templatePath(scope) != nil:
		return scope == w.id.plural
	case s.kind == writesDenied && scope == eventsResource:
		return false
	}
	if scope == "" || o.options.Program(scope) {
		return true
	}
	if name, ok := strings.CutPrefix(scope, "namespaces/"); ok {
		return name == w.id.namespace
	}
	if strings.Contains(scope, "/") {
		return scope == w.id.String() || w.listsObject(scope)
	}
	if _, known := o.namespaces[scope]; known {
		return scope == w.id.namespace
	}
	return !o.clients[scope]
}

// calmSince returns when the program works as usual for a workload, as far as faults are concerned, or has done so since. It is
// not known while a fault lasts.
func (o *Oracle) calmSince(w *workload) (since time.Time, known bool) {
	return o.calmAfter(w, o.faults.restored(), func(*span) bool { return false })
}

// calmAfter is calmSince but for some faults, where the replicas work as usual since a moment.
func (o *Oracle) calmAfter(w *workload, replicas time.Time, but func(*span) bool) (since time.Time, known bool) {
	t := &o.faults
	if t.begun.IsZero() || !t.working() {
		return time.Time{}, false
	}
	since = t.begun.Add(warmUp)
	if warm := t.led.Add(afterElection); !t.led.IsZero() && warm.Before(since) {
		since = warm
	}
	faults, known := o.undisturbedSince(w, but)
	return later(later(since, replicas), faults), known
}

// overSince returns since when no fault disturbs the program's work on a workload. It is not known while one lasts.
func (o *Oracle) overSince(w *workload) (since time.Time, known bool) {
	return o.overSinceBut(w, func(*span) bool { return false })
}

// overSinceBut is overSince but for some faults.
func (o *Oracle) overSinceBut(w *workload, but func(*span) bool) (since time.Time, known bool) {
	since, known = o.undisturbedSince(w, but)
	return later(since, o.faults.restored()), known
}

// undisturbedSince is overSinceBut for what is no outage of a replica.
func (o *Oracle) undisturbedSince(w *workload, but func(*span) bool) (since time.Time, known bool) {
	for _, s := range o.faults.spans {
		switch {
		case s.outage(), but(s), !o.touches(s, w):
		case s.open:
			return time.Time{}, false
		default:
			since = later(since, s.to.Add(s.recovery()))
		}
	}
	return since, true
}

// healthy reports whether nothing disturbed the program's work on a workload between two moments.
func (o *Oracle) healthy(w *workload, from time.Time) bool {
	since, known := o.calmSince(w)
	return known && !since.After(from)
}

// answering reports whether nothing disturbed the webhook's answers about a workload since a moment. It reads what is live:
// watches that deliver nothing do not matter, as long as the digest keys stay the same.
func (o *Oracle) answering(w *workload, from time.Time) bool {
	if w.keyChanged > 0 || o.faults.led.IsZero() || !o.faults.working() {
		return false
	}
	since, known := o.overSinceBut(w, func(s *span) bool { return s.kind == "watch-held" || s.deniesWorkloads() })
	return known && !later(since, o.faults.led.Add(afterElection)).After(from)
}

// clocksWrong reports whether a clock was wrong shortly before a moment.
func (t *timeline) clocksWrong(now time.Time) bool {
	for _, s := range t.spans {
		if s.kind == "clock" && (s.open || now.Sub(s.to) < recovery) {
			return true
		}
	}
	return false
}

// never reports whether there was no fault at all so far.
func (t *timeline) never() bool { return len(t.spans) == 0 && t.started.IsZero() }

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
func (o *Oracle) slowest() timing {
	slowest := timing{o.options.Settle, o.options.SettleMax, o.options.Refractory}
	for _, t := range o.timings {
		slowest.settle = max(slowest.settle, t.settle)
		slowest.settleMax = max(slowest.settleMax, t.settleMax)
		slowest.refractory = max(slowest.refractory, t.refractory)
	}
	return slowest
}

// Timing says with which gates a process was started, where these are not those of the Options.
func (o *Oracle) Timing(client string, settle, settleMax, refractory time.Duration) {
	o.timings[client] = timing{settle, settleMax, refractory}
}

func (o *Oracle) timingOf(client string) timing {
	if t, ok := o.timings[client]; ok {
		return t
	}
	return timing{o.options.Settle, o.options.SettleMax, o.options.Refractory}
}

// isKeySecret reports whether a key is that of the Secret with the digest keys.
func (o *Oracle) isKeySecret(k world.Key) bool {
	return k.Resource.Plural == "secrets" && k.Namespace == o.options.KeySecret.Namespace && k.Name == o.options.KeySecret.Name
}
