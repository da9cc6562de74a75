package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// restartLaw has the laws "kept" and "explained" for restarts without a new template.
type restartLaw struct {
	*ledger
	passive

	// asked has when a workload began to ask for them.
	asked map[*workload]time.Time
}

func newRestartLaw(l *ledger) *restartLaw {
	return &restartLaw{ledger: l, asked: map[*workload]time.Time{}}
}

func (l *restartLaw) stored(c world.Commit) {
	if w := l.workloads[idOf(c.Key)]; w != nil && asksForRestarts(c.New) && !asksForRestarts(c.Old) {
		l.asked[w] = c.At
	}
}

// stamped judges the time of a restart, and that a reload leaves the template of a workload alone that asks for restarts.
func (l *restartLaw) stamped(r restamp) {
	w, s := r.workload, r.stamp
	switch {
	case !r.byProgram():
	case s.isRestart():
		l.judgeTime(w, s)
		if !s.same(r.before) {
			l.violate(s.at, broken{"kept", w.id.String(), "restart-with-template"},
				"the program restarted the pods at %s, and changed the template as well", l.when(s.at))
		}
	case l.readsRestarts(s.call.Client) && asksForRestarts(r.commit.Old) && s.arrivedAt.Sub(later(l.asked[w], w.changed)) >= notice &&
		l.healthy(w, s.arrivedAt.Add(-notice)):
		l.violate(s.at, broken{"kept", w.id.String(), "template-of-restart"},
			"the program changed the template at %s, although the workload asks for restarts without a new one", l.when(s.at))
	}
}

// readsRestarts reports whether a replica reads the annotations by which workloads ask for restarts: those are of Reloader.
func (l *restartLaw) readsRestarts(client string) bool {
	return !l.options.HalfRead || !l.options.Second(client)
}

// judgeTime looks whether a restart is one of now.
func (l *restartLaw) judgeTime(w *workload, s *stamp) {
	l.count("restarts without a template")
	if l.faults.clocksWrong(s.at) || !l.healthy(w, s.arrivedAt) {
		return
	}
	if s.restartAt.Before(s.arrivedAt.Add(-closeTo)) || s.restartAt.After(s.at.Add(closeTo)) {
		l.violate(s.at, broken{"explained", w.id.String(), "restart-time"},
			"the program asked at %s for a restart of the pods from before %s", l.when(s.arrivedAt), l.when(s.restartAt))
	}
}

// restartOf returns the restart by which the controller has deleted a pod, and the stamp before it; nil if there is none. What makes a
// ReplicaSet smaller since then may delete any of its pods.
func (l *keptLaw) restartOf(p *pod, c world.Commit) (before, s *stamp) {
	w := p.workload
	at, last := restartAt(w.object), w.last()
	_, owner := controllerOf(c.Old)
	if at.IsZero() || at.After(c.At) || !p.createdAt.Before(at) || p.stamp == nil || !p.stamp.same(last) {
		return nil, nil
	}
	for i := len(w.stamps) - 1; i > 0; i-- {
		s := w.stamps[i]
		if s.isRestart() {
			if s.restartAt.Equal(at) && l.shrunk[owner] <= s.version {
				return w.stamps[i-1], s
			}
			break
		}
	}
	return nil, nil
}

// restartCause returns why a restart has replaced a pod rightly, or may have; empty if there is no reason. It replaces all pods, so that
// what matters is what the program knew when it made the restart.
func (l *keptLaw) restartCause(p *pod, before, s *stamp) string {
	if p.restarts >= s.restarts {
		return "created right before the time of a restart"
	}
	return l.causeOf(&pod{workload: p.workload, stamp: before, started: before.version}, s)
}

// awaitsRestart returns what keeps a pod of the present template that a restart was to replace; empty if nothing does. A restart is one by
// the clock of the leader: where that is wrong, it comes late, or leaves younger pods alone. Users put it off, or end it unseen.
func (l *currentLaw) awaitsRestart(p *pod, now time.Time) string {
	w := p.workload
	for i := len(w.stamps) - 1; i > 0; i-- {
		s := w.stamps[i]
		switch {
		case s.restarts == p.restarts:
			return ""
		case w.cutShort > s.version:
			return "the restart was ended"
		case s.isRestart() && restartAt(w.object).After(later(s.restartAt, now)) && restartAt(w.object).Before(now.Add(time.Minute)):
			return "the restart was put off"
		}
		wrong := l.faults.clockWrongOf(s.call.Client, s.at.Add(-recovery), s.at)
		if s.isRestart() && wrong && (s.restartAt.After(now) || !p.createdAt.Before(s.restartAt)) {
			return "a clock was wrong"
		}
	}
	return ""
}

// createdAt returns when an object was created, in whole seconds.
func createdAt(object world.Object) time.Time {
	at, err := time.Parse(time.RFC3339, world.Text(object, "metadata", "creationTimestamp"))
	if err != nil {
		return time.Time{}
	}
	return at
}
