package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Fault is the begin or the end of a fault.
type Fault struct {
	At time.Time
	// Kind says what fails. These are known: "down", "killed", "stopped", "frozen" (a replica does not work), "clock",
	// "permissions", "denied", "watch-refused", "lists-short", "watch-held", "writes-hang", "writes-denied", "namespace-webhook", "kind-away",
	// "kind-contradicted", and those that begin with "strips ", whose scope is "namespaces/shop" or the resource of workloads; every other one is something that may disturb all of the program within Scope.
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

// writesHang is the kind of the fault that the program's writes of workloads never have an answer.
const writesHang = "writes-hang"

// span is a fault in time.
type span struct {
	kind, scope string
	from, to    time.Time
	open        bool
	// covered means that another replica worked when it began, coveredAtEnd that one did when it ended.
	covered, coveredAtEnd bool
	// hung are, by namespace, the workloads of which a write of the program never has an answer: the others there wait for a slot.
	hung map[string]map[string]bool
}

const (
	// slots is how many writes of a namespace may be in flight: with as many that hang, no other one has a slot.
	slots = 8
	// perSlot is how long a namespace waits for one more while a write hangs.
	perSlot = 400 * time.Millisecond
)

// hangsWorkloads reports whether a fault leaves the program's writes of the workloads of a resource without an answer, and no others.
func (s *span) hangsWorkloads() bool {
	return s.kind == writesHang && world.TemplatePath(s.scope) != nil
}

// hang records a request of the program that may never have an answer.
func (t *timeline) hang(call *world.Call) {
	for _, s := range t.spans {
		if s.open && s.hangsWorkloads() && s.scope == call.Key.Resource.Plural && (call.Verb == "update" || call.Verb == "patch") {
			if s.hung == nil {
				s.hung = map[string]map[string]bool{}
			}
			if s.hung[call.Key.Namespace] == nil {
				s.hung[call.Key.Namespace] = map[string]bool{}
			}
			s.hung[call.Key.Namespace][call.Key.Name] = true
		}
	}
}

func (s *span) recovery() time.Duration {
	if s.strips() {
		return longRecovery
	}
	switch s.kind {
	case "denied", "namespace-webhook":
		return longRecovery
	case "permissions", "watch-refused", "lists-short", kindAway, kindContradicted:
		return blindRecovery
	case writesHang:
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
	// second reports whether a process is one of the second installation, which two means that there is.
	second func(process string) bool
	two    bool
	// started is when the last process started or ended by itself, alone when one did while no other replica worked.
	started, alone time.Time
}

func newTimeline(o Options) timeline {
	return timeline{
		up: map[string]bool{}, since: map[string]time.Time{}, ended: map[string]time.Time{}, second: o.Second, two: o.Sides != nil,
	}
}

// recordFault records the begin or the end of a fault.
func (l *faultLog) recordFault(f Fault) {
	t := &l.faults
	if f.Kind == "down" && l.options.Program(f.Scope) {
		if again := t.process(f); again {
			return
		}
	}
	if f.Begin {
		t.spans = append(t.spans, &span{kind: f.Kind, scope: f.Scope, from: f.At, open: true, covered: t.covered(f.Scope, f.At)})
		l.count("faults")
		return
	}
	for _, s := range t.spans {
		if s.open && s.kind == f.Kind && s.scope == f.Scope {
			s.open, s.to, s.coveredAtEnd = false, f.At, t.covered(f.Scope, f.At)
			return
		}
	}
}

// process records a process that starts or ends. What is killed may be reported again when the process is gone.
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

// waitsForSlot returns how long the writes of a namespace may wait for a slot, as others there hang or did so until recently.
func (t *timeline) waitsForSlot(namespace string, now time.Time) time.Duration {
	wait := time.Duration(0)
	for _, s := range t.spans {
		if s.open || now.Sub(s.to) < hungRecovery {
			wait += time.Duration(len(s.hung[namespace])) * perSlot
		}
	}
	return wait
}

// lead records that a replica leads from now on.
func (l *faultLog) lead(client string, at time.Time) {
	second := l.options.Second(client)
	l.leader, l.predecessor, l.leaderSince = client, l.leaders[second], at
	l.leaders[second] = client
	if l.faults.led.IsZero() && (!l.faults.two || len(l.leaders) > 1) {
		l.faults.led = at
	}
}

// leads reports whether a replica is the leader of its installation.
func (l *faultLog) leads(client string) bool {
	return client != "" && l.leaders[l.options.Second(client)] == client
}

// heard records a sign of life of a process.
func (t *timeline) heard(client string, at time.Time) {
	if _, known := t.up[client]; !known {
		t.up[client], t.since[client] = true, at
	}
	if t.begun.IsZero() {
		t.begun = at
	}
}

// working reports whether a replica works now, of each installation.
func (t *timeline) working() bool {
	working := map[bool]bool{}
	for name, up := range t.up {
		if up && !t.out(name) {
			working[t.second(name)] = true
		}
	}
	return len(working) == 1 && !t.two || len(working) > 1
}

// out reports whether a fault keeps a process from working.
func (t *timeline) out(process string) bool {
	return slices.ContainsFunc(t.spans, func(s *span) bool {
		return s.open && s.outage() && s.kind != "down" && isProcessOf(process, s.scope)
	})
}

func isProcessOf(process, replica string) bool {
	return process == replica || strings.HasPrefix(process, replica+".")
}

// clocksWrong reports whether a clock was wrong shortly before a moment.
func (t *timeline) clocksWrong(now time.Time) bool { return t.clockWrongWithin(recovery, now) }

func (t *timeline) clockWrongWithin(d time.Duration, now time.Time) bool {
	return slices.ContainsFunc(t.spans, func(s *span) bool { return s.kind == "clock" && (s.open || now.Sub(s.to) < d) })
}

// overlaps reports whether a fault was there at some time of a period.
func (s *span) overlaps(from, to time.Time) bool {
	return !s.from.After(to) && (s.open || !s.to.Before(from))
}

// clockWrongOf reports whether the clock of a process was wrong at some time of a period.
func (t *timeline) clockWrongOf(process string, from, to time.Time) bool {
	return slices.ContainsFunc(t.spans, func(s *span) bool {
		return s.kind == "clock" && isProcessOf(process, s.scope) && s.overlaps(from, to)
	})
}

// deniedWithin reports whether requests of all kinds were refused now and then in some time.
func (t *timeline) deniedWithin(from, to time.Time) bool {
	return slices.ContainsFunc(t.spans, func(s *span) bool {
		return s.kind == "denied" && s.scope == "" && s.overlaps(from, to)
	})
}

// never reports whether there was no fault at all so far.
func (t *timeline) never() bool { return len(t.spans) == 0 && t.started.IsZero() }

// disturbedSince returns since when faults that may keep an answer from a process have lasted, or followed one another within a minute.
func (t *timeline) disturbedSince(at time.Time) time.Time {
	for _, s := range slices.Backward(t.spans) {
		switch s.kind {
		case "down", "webhook-away", "namespace-webhook", "clock", "watch-held", "watch-refused":
			continue
		}
		if s.from.Before(at) && (s.open || !s.to.Before(at.Add(-recovery))) {
			at = s.from
		}
	}
	return at
}
