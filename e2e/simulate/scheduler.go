package simulate

import (
	"cmp"
	"slices"
	"testing/synctest"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// timer is something that the scheduler does at a moment of fake time.
type timer struct {
	at time.Time
	// number keeps timers of one moment in the order in which they were set.
	number int
	do     func()
}

// after has the scheduler do something later.
func (s *simulation) after(d time.Duration, do func()) {
	s.timerCount++
	t := timer{time.Now().Add(d), s.timerCount, do}
	i, _ := slices.BinarySearchFunc(s.timers, t, func(a, b timer) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number)) })
	s.timers = slices.Insert(s.timers, i, t)
}

// settle waits until everything but the scheduler is at rest.
func (s *simulation) settle() { synctest.Wait() }

// latency is how long a decision takes, so that no two things have the same time: they have different times on real clocks, too.
const latency = 100 * time.Microsecond

// hotLoop is how many decisions may be needed without a rest. More are a loop that never waits.
const hotLoop = 20_000

// run schedules until a moment, or until done says so.
func (s *simulation) run(until time.Time, done func() bool) {
	for {
		s.settle()
		s.crash()
		s.reap()
		s.operate()
		if s.fire() || s.decide() {
			continue
		}
		if s.broken != nil || done != nil && done() || !time.Now().Before(until) {
			return
		}
		s.rest(until)
	}
}

// fire does what is due now.
func (s *simulation) fire() bool {
	if len(s.timers) == 0 || s.timers[0].at.After(time.Now()) {
		return false
	}
	t := s.timers[0]
	s.timers = s.timers[1:]
	t.do()
	return true
}

// rest lets time go on until something happens.
func (s *simulation) rest(until time.Time) {
	s.moment = 0
	if len(s.timers) > 0 && s.timers[0].at.Before(until) {
		until = s.timers[0].at
	}
	if due, ok := s.cluster.Next(); ok && due.Before(until) && s.controllersWork() {
		until = due
	}
	for _, w := range s.gate.Waiting() {
		if w.seen && s.holds(w) == nil && w.until.Before(until) {
			until = w.until
		}
	}
	wake := time.NewTimer(time.Until(until))
	defer wake.Stop()
	select {
	case <-s.gate.arrived:
	case <-wake.C:
	}
}

// choice is one thing that can happen next.
type choice struct {
	name string
	do   func()
}

// decide lets one of the things happen that can happen now. It is false when there is none.
func (s *simulation) decide() bool {
	if s.housekeeping() {
		return true
	}
	choices := s.choices()
	if len(choices) == 0 {
		return false
	}
	if s.moment++; s.moment > hotLoop && !s.closing {
		s.violate("hot-loop", "", "the program goes on without waiting: "+choices[0].name)
		s.broken = errHotLoop
		return false
	}
	if s.oracle.looping() && !s.closing {
		s.broken = errHotLoop
		return false
	}
	chosen := s.trace.choose(choices, s.random)
	chosen.do()
	time.Sleep(latency) //nolint:forbidigo // the time is fake
	return true
}

// housekeeping serves the requests for leases, and those that open a watch. They go on all the time, at intervals that
// client-go draws by chance: they must not shift the choices about everything else.
func (s *simulation) housekeeping() (served bool) {
	for _, w := range s.gate.Waiting() {
		if !regular(w.call) {
			continue
		}
		if !w.seen {
			s.see(w)
		}
		if !w.until.After(time.Now()) && s.holds(w) == nil {
			s.serve(w)
			served = true
		}
	}
	return served
}

// choices returns what can happen now: requests that are served, and pieces of work of the controllers.
func (s *simulation) choices() []choice {
	var all []choice
	nth := map[string]int{}
	for _, w := range s.gate.Waiting() {
		if regular(w.call) {
			continue
		}
		if !w.seen {
			s.see(w)
		}
		if w.until.After(time.Now()) || s.holds(w) != nil {
			continue
		}
		name := tracename(w.name, nth[w.name])
		nth[w.name]++
		all = append(all, choice{name, func() { s.serve(w) }})
	}
	if s.controllersWork() {
		for _, piece := range s.cluster.Pending() {
			all = append(all, choice{"work " + piece, func() { s.cluster.Work(piece) }})
		}
	}
	return all
}

// controllersWork reports whether the models of the controllers do what is pending. Where they do not, time goes on although
// something is due.
func (s *simulation) controllersWork() bool { return !s.faults.slowControllers && !s.closing }

// see decides how long a request is under way.
func (s *simulation) see(w *waiter) {
	w.seen = true
	w.until = w.call.Arrived.Add(s.faults.delay(s, w.call))
}

// serve lets a request pass, or fail.
func (s *simulation) serve(w *waiter) {
	s.requests++
	fate := s.faults.fate(s, w.call)
	if !s.resting && isProgram(w.call.Client) && w.call.Write() && w.call.Key.Resource != world.Leases {
		s.writes++
		if s.writes == s.history.Setup.CrashAtWrite {
			s.last.Store(w.call)
			fate = apiserver.Fate{Lose: true}
		}
	}
	s.gate.Pass(w, fate)
}

// replied is called when a request is answered.
func (s *simulation) replied(r world.Reply) {
	s.oracle.Reply(r)
	if r.Call == s.last.Load() {
		s.stored.Store(true)
		s.gate.wake()
	}
}

// crash kills a replica whose last write is stored. It starts again by itself.
func (s *simulation) crash() {
	if !s.stored.Swap(false) {
		return
	}
	for _, at := range s.slots {
		if r := at.current; r != nil && r.name == s.last.Load().Client {
			s.crashed++
			s.kill(r)
		}
	}
}
