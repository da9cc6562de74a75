package oracle

import (
	"slices"
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
}

func (l *hotLoopLaw) request(call *world.Call) {
	if w := l.workloads[idOf(call.Key)]; w != nil && l.isProgram(call) && call.Write() {
		l.judge(w, call)
	}
}

// judge is the law "hot-loop": the program waits between its attempts to write a workload, also where each of its own
// writes wakes it up.
func (l *hotLoopLaw) judge(w *workload, call *world.Call) {
	if l.timingOf(call.Client).refractory == 0 {
		return // each change of its configuration may restart it at once
	}
	recent := append(w.requests.recent, call.Arrived)
	if len(recent) > hastily {
		recent = recent[1:]
	}
	w.requests.recent = recent
	took := call.Arrived.Sub(recent[0])
	if len(recent) < hastily || took >= shortTime || w.acts[0].After(recent[0]) {
		return
	}
	if every := l.restless(w, recent[0], call.Arrived); every > 0 && every < hammering {
		return // each change may be a reload, if the gates are open
	}
	l.looping = true
	if l.faults.clockRan(call.Arrived) {
		l.count("hot loops excused: a clock was wrong")
		return
	}
	l.violate(call.Arrived, broken{"hot-loop", w.id.String(), call.Verb}, "the program sent %d writes of it in the %s before %s",
		hastily, took, l.when(call.Arrived))
}

// clockRan reports whether a clock was wrong not so long ago that what a process has noted by it lies in the past for sure. An event of
// the future is always newer than the last attempt, so that nothing waits. The clock of a real process is monotonic.
func (t *timeline) clockRan(now time.Time) bool {
	return slices.ContainsFunc(t.spans, func(s *span) bool { return s.kind == "clock" && (s.open || now.Sub(s.to) < clockRecovery) })
}
