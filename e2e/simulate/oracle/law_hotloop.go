package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// hastily many writes of one workload in a short time mean that the program does not wait between its attempts. Attempts that
// are repeated ever more rarely, and some users who write at the same time, make less than half of them.
const (
	hastily   = 60
	shortTime = 5 * time.Second
)

// hotLoopLaw is the law "hot-loop".
type hotLoopLaw struct {
	*ledger
	passive

	looping bool
	// others has when the last writes of objects arrived that are no workloads, but Events and leases.
	others map[id][]time.Time
}

func newHotLoopLaw(l *ledger) *hotLoopLaw {
	return &hotLoopLaw{ledger: l, others: map[id][]time.Time{}}
}

// stored forgets the writes of what a user writes.
func (l *hotLoopLaw) stored(c world.Commit) {
	if len(l.others) > 0 && c.Call != nil && !l.isProgram(c.Call) {
		delete(l.others, idOf(c.Key))
	}
}

func (l *hotLoopLaw) request(call *world.Call) {
	if !call.Write() || !l.isProgram(call) {
		return
	}
	object := idOf(call.Key)
	if w := l.workloads[object]; w != nil {
		l.judge(w, call)
	} else if object.plural != "leases" && object.plural != eventsResource && object.name != "" {
		l.judgeOther(object, call)
	}
}

// judgeOther is judge for Jobs, for the Secrets with their manifests, and for custom resources that have the digest of what is below them.
func (l *hotLoopLaw) judgeOther(object id, call *world.Call) {
	if object.plural == "jobs" && l.timingOf(call.Client).refractory == 0 {
		return // as for a workload: a suspended Job is stamped for each change
	}
	l.others[object] = lastTimes(l.others[object], call.Arrived)
	if recent := l.others[object]; len(recent) == hastily && call.Arrived.Sub(recent[0]) < shortTime {
		l.report(object, call, call.Arrived.Sub(recent[0]))
	}
}

// lastTimes adds a time to the last ones, and keeps as many as are judged.
func lastTimes(recent []time.Time, at time.Time) []time.Time {
	recent = append(recent, at)
	return recent[max(len(recent)-hastily, 0):]
}

// judge is the law "hot-loop": the program waits between its attempts to write a workload, also where each of its own
// writes wakes it up.
func (l *hotLoopLaw) judge(w *workload, call *world.Call) {
	if l.timingOf(call.Client).refractory == 0 {
		return // each change of its configuration may restart it at once
	}
	recent := lastTimes(w.requests.recent, call.Arrived)
	w.requests.recent = recent
	took := call.Arrived.Sub(recent[0])
	if len(recent) < hastily || took >= shortTime || w.acts[0].After(recent[0]) {
		return
	}
	if every := l.restless(w, recent[0], call.Arrived); every > 0 && every < hammering {
		return // each change may be a reload, if the gates are open
	}
	l.report(w.id, call, took)
}

// report reports a hot loop.
func (l *hotLoopLaw) report(object id, call *world.Call, took time.Duration) {
	l.looping = true
	if l.faults.clockRan(call.Arrived) {
		l.count("hot loops excused: a clock was wrong")
		return
	}
	l.violate(call.Arrived, broken{"hot-loop", object.String(), call.Verb}, "the program sent %d writes of it in the %s before %s",
		hastily, took, l.when(call.Arrived))
}

// clockRan reports whether a clock was wrong not so long ago that what a process has noted by it lies in the past for sure. An event of
// the future is always newer than the last attempt, so that nothing waits. The clock of a real process is monotonic.
func (t *timeline) clockRan(now time.Time) bool { return t.clockWrongWithin(clockRecovery, now) }
