package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// restoreEtcd is the fault by which all objects, and the version that they are counted with, go back to what they were.
const restoreEtcd = "restore-etcd"

// restoreFaults have no weight: a theme and a situation have them.
func restoreFaults() []faultKind {
	return []faultKind{{
		name: restoreEtcd, kind: "restored",
		words: "etcd is restored from a snapshot of %[3]s before, and the API server refuses the program's connections for %[2]s",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{With: map[string]string{
				"for": pick(r, "100ms", "2s", "5s", "12s"), "by": pick(r, "1s", "3s", "8s", "20s", "60s"),
			}}
		},
		begin: restoreSnapshot,
	}}
}

// restoreSnapshot brings an earlier state back. The API server that the program reaches needs some time to start again; users and
// controllers go on, as at another one. What was under way is lost.
func restoreSnapshot(s *simulation, step history.Step) func() {
	by, err := time.ParseDuration(step.With["by"])
	if err != nil {
		return nil
	}
	to := time.Now().Add(-by)
	if to.Before(s.opened) {
		to = s.opened
	}
	cut := s.watched()
	s.faults.restarting.Add(1)
	s.net.Refuse(apiHost, isProgram)
	for _, w := range s.gate.Waiting() {
		s.gate.Pass(w, apiserver.Fate{Drop: true})
	}
	back := s.api.Restore(to)
	s.oracle.ask(func(o *oracle.Oracle) { o.Restored(time.Now(), back) })
	return func() {
		if s.faults.restarting.Add(-1) == 0 {
			s.net.Accept(apiHost)
		}
		s.reuseVersions(cut)
	}
}

// watching is one process, and what it watches.
type watching struct {
	client   string
	resource world.Resource
}

// watched returns what the program watches.
func (s *simulation) watched() []watching {
	var all []watching
	for _, w := range s.api.Watches() {
		if isProgram(w.Client) {
			all = append(all, watching{w.Client, w.Key.Resource})
		}
	}
	return all
}

// reuseVersions gives objects the versions again that they have had in the lost state, once the program watches again: before that it is a
// documented limit that the earlier content counts as the present one.
func (s *simulation) reuseVersions(cut []watching) {
	open := s.watched()
	waits := slices.ContainsFunc(cut, func(w watching) bool { return s.runs(w.client) && !slices.Contains(open, w) })
	if waits || s.faults.restarting.Load() > 0 {
		s.after(time.Second, func() { s.reuseVersions(cut) })
		return
	}
	s.after(time.Second, s.api.ReuseVersions)
}

// runs reports whether a process has not ended.
func (s *simulation) runs(client string) bool {
	return slices.ContainsFunc(s.slots, func(at *slot) bool { return at.current != nil && at.current.name == client })
}

// restoredFromSnapshot is a change, and a restore of the state before its reload, or before the change. Another change may follow before
// the program is connected again. Then nothing follows, or so many writes that the version is reached again at which the watches were, or,
// later, a write that changes no content and gives the object a version that it has had.
func restoredFromSnapshot(r *rand.Rand) situation {
	p := anyTracked(r)
	after := time.Duration(15+r.IntN(60)) * 100 * time.Millisecond
	by := after + []time.Duration{-300 * time.Millisecond, -300 * time.Millisecond, -time.Second, time.Second, 20 * time.Second}[r.IntN(5)]
	steps := []history.Step{p.edit("lost", betweenSituations), {
		Do: restoreEtcd, Wait: history.Duration(after), With: map[string]string{"by": by.String(), "for": pick(r, "1s", "3s", "3s", "6s")},
	}}
	end := r.IntN(3)
	if end == 0 {
		steps = append(steps, history.Step{Do: "hammer-config", On: "configmaps/bank/app", With: map[string]string{
			"key": "app.properties", "n": "150", "every": "2ms",
		}})
	}
	if r.IntN(2) == 0 {
		steps = append(steps, p.edit("restored", time.Duration(r.IntN(20))*100*time.Millisecond))
	}
	if end == 1 {
		steps = append(steps, history.Step{
			Do: "label-config", On: p.config, Wait: history.Duration(12 * time.Second), With: map[string]string{"value": "x"},
		})
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: steps}
}
