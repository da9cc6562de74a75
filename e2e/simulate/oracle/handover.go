package oracle

import (
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// slowestRetry is by how much the program lengthens the time between two looks at the lease at most, at random.
	slowestRetry = 2.2
	// takeOver is what a new leader needs besides the looks at the lease.
	takeOver = 800 * time.Millisecond
)

// handOver is how long it takes at most until another replica leads: one that is stopped gives the lease back, of one that is killed it
// runs out, some time after the others saw it renewed. With the flags' defaults that is 3 s and 20 s.
func (o Options) handOver(givenBack bool) time.Duration {
	look := time.Duration(slowestRetry * float64(o.Retry))
	if givenBack {
		return look + takeOver
	}
	return o.Lease + 2*look + takeOver
}

// replicaOf returns the replica of a process: "replica-0" for "replica-0.2".
func replicaOf(process string) string {
	name, _, _ := strings.Cut(process, ".")
	return name
}

// covered reports whether another replica of the installation of a process, or another process, works at a moment and has done so for so
// long that it can take over at once.
func (t *timeline) covered(process string, at time.Time) bool {
	for other, up := range t.up {
		if up && replicaOf(other) != replicaOf(process) && t.second(other) == t.second(process) && at.Sub(t.since[other]) >= warmUp && t.wellSince(other, at.Add(-warmUp)) {
			return true
		}
	}
	return false
}

// wellSince reports whether no fault kept a process from working since a moment.
func (t *timeline) wellSince(process string, from time.Time) bool {
	for _, s := range t.spans {
		if s.outage() && s.kind != "down" && isProcessOf(process, s.scope) && (s.open || s.to.After(from)) {
			return false
		}
	}
	return true
}

// isStopped reports whether a process ended after SIGTERM: its outage counts from that signal on.
func (t *timeline) isStopped(down *span) bool {
	for _, s := range t.spans {
		if s.kind == "stopped" && isProcessOf(down.scope, s.scope) && !s.from.Before(t.since[down.scope]) && !s.from.After(down.from) {
			return true
		}
	}
	return false
}

// restored returns when all outages of replicas are over and forgotten, whether others went on or not.
func (t *timeline) restored() time.Time {
	var since time.Time
	if !t.started.IsZero() {
		since = t.started.Add(recovery)
	}
	for _, s := range t.spans {
		if s.outage() {
			since = later(since, s.from.Add(recovery))
			if !s.open {
				since = later(since, s.to.Add(recovery))
			}
		}
	}
	return since
}

// ledSince returns when a replica surely leads and works again after all outages: soon where another one could take over.
func (l *faultLog) ledSince() time.Time {
	t := &l.faults
	var since time.Time
	if !t.alone.IsZero() {
		since = t.alone.Add(recovery)
	}
	for _, s := range t.spans {
		if s.outage() {
			since = later(since, l.ledAfter(s))
		}
	}
	return since
}

func (l *faultLog) ledAfter(s *span) time.Time {
	var since time.Time
	switch {
	case !s.covered:
		since = s.from.Add(recovery)
	case s.kind == "down" && l.faults.isStopped(s):
	default:
		since = s.from.Add(l.options.handOver(s.kind == "stopped") + afterElection)
	}
	if !s.open && !s.coveredAtEnd {
		since = later(since, s.to.Add(recovery))
	}
	return since
}

// commitLease finds out who leads.
func (l *faultLog) commitLease(c world.Commit) {
	holder := world.Text(world.Section(c.New, "spec"), "holderIdentity")
	if !l.isProgram(c.Call) || holder == world.Text(world.Section(c.Old, "spec"), "holderIdentity") {
		return
	}
	if holder == "" {
		l.leaderSince = c.At
		return
	}
	l.lead(c.Call.Client, c.At)
}
