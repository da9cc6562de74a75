package simulate

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// watchFaults are about running watches.
func watchFaults() []faultKind {
	on := func(r *rand.Rand) string { return pick(r, "configmaps", "secrets", "deployments", "statefulsets", "") }
	at := func(r *rand.Rand) history.Step { return history.Step{On: on(r)} }
	each := func(do func(*apiserver.Watch)) func(s *simulation, step history.Step) func() {
		return func(s *simulation, step history.Step) func() {
			s.eachWatch(step.On, do)
			return nil
		}
	}
	return []faultKind{
		{
			name: "hold-watches", kind: "watch-held", weight: 5, scoped: true, words: "watches of %[1]s deliver nothing for %[2]s",
			draw:  func(r *rand.Rand) history.Step { return lasting(r, on(r)) },
			begin: hold((*apiserver.Watch).Release),
		},
		{
			name: "fold-watches", kind: "watch-held", weight: 7, scoped: true, words: "watches of %[1]s deliver nothing for %[2]s and are then opened anew: what came in between is never seen",
			draw:  func(r *rand.Rand) history.Step { return lasting(r, on(r)) },
			begin: hold((*apiserver.Watch).Expire),
		},
		{name: "break-watches", kind: "watch-held", instant: true, weight: 3, words: "watches of %[1]s are cut", draw: at, begin: each((*apiserver.Watch).Break)},
		{name: "close-watches", kind: "watch-held", instant: true, weight: 2, words: "watches of %[1]s end", draw: at, begin: each((*apiserver.Watch).Close)},
		{name: "expire-watches", kind: "watch-held", instant: true, weight: 2, words: "watches of %[1]s end with 410 Gone", draw: at, begin: each((*apiserver.Watch).Expire)},
		{
			name: "compact", kind: "watch-held", instant: true, weight: 1, words: "the API server forgets all earlier versions",
			draw: func(*rand.Rand) history.Step { return history.Step{} },
			begin: func(s *simulation, _ history.Step) func() {
				s.api.Compact(s.api.Version())
				return nil
			},
		},
		{
			name: "hang-watches", kind: "watch-refused", weight: 3, scoped: true, words: "watches of %[1]s are cut, and new ones have no answer for %[2]s, then break",
			draw: func(r *rand.Rand) history.Step { return lasting(r, pick(r, "configmaps", "secrets", "deployments")) },
			begin: func(s *simulation, step history.Step) func() {
				r := &rule{percent: 100, resource: step.On, verbs: []string{"watch"}, hold: true}
				s.faults.rules = append(s.faults.rules, r)
				s.eachWatch(step.On, (*apiserver.Watch).Break)
				return func() {
					s.faults.remove(r)
					for _, w := range s.gate.Waiting() {
						if r.matches(w.call) {
							s.gate.Pass(w, apiserver.Fate{Drop: true})
						}
					}
				}
			},
		},
		{
			name: "abandon-watches", kind: "watch-refused", weight: 1, scoped: true, words: "watches of %[1]s are cut, and those opened within %[2]s never have an answer",
			draw: func(r *rand.Rand) history.Step { return lasting(r, pick(r, "configmaps", "secrets", "deployments")) },
			begin: func(s *simulation, step history.Step) func() {
				r := &rule{
					percent: 100, resource: step.On, verbs: []string{"watch"},
					fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Hang: true} },
				}
				s.faults.rules = append(s.faults.rules, r)
				s.eachWatch(step.On, (*apiserver.Watch).Break)
				return func() { s.faults.remove(r) }
			},
		},
	}
}

// eachWatch does something to the program's watches of a resource; empty means all.
func (s *simulation) eachWatch(resource string, do func(*apiserver.Watch)) {
	for _, w := range s.api.Watches() {
		if isProgram(w.Client) && (resource == "" || w.Key.Resource.Plural == resource) {
			do(w)
		}
	}
}

// hold has watches deliver nothing until the fault is over.
func hold(then func(*apiserver.Watch)) func(s *simulation, step history.Step) func() {
	return func(s *simulation, step history.Step) func() {
		var held []*apiserver.Watch
		s.eachWatch(step.On, func(w *apiserver.Watch) {
			w.Hold()
			held = append(held, w)
		})
		return func() {
			for _, w := range held {
				then(w)
			}
		}
	}
}

// admissionFaults are about webhooks: ours and others'.
func admissionFaults() []faultKind {
	counted := func(count func(f *faults) *int) func(s *simulation, step history.Step) func() {
		return func(s *simulation, _ history.Step) func() {
			s.webhookFaults(func(f *faults) { *count(f)++ })
			return func() { s.webhookFaults(func(f *faults) { *count(f)-- }) }
		}
	}
	whole := func(r *rand.Rand) history.Step { return lasting(r, "") }
	return []faultKind{
		{
			name: "webhook-away", kind: "webhook-away", weight: 6, words: "our webhook cannot be reached for %[2]s", draw: whole,
			begin: counted(func(f *faults) *int { return &f.webhookAway }),
		},
		{
			name: "webhook-hangs", kind: "webhook-away", weight: 2, words: "our webhook does not answer for %[2]s", draw: whole,
			begin: counted(func(f *faults) *int { return &f.webhookHangs }),
		},
		{
			name: "webhook-flaky", kind: "webhook-away", weight: 3, words: "single calls of our webhook fail (%[3]s %%) for %[2]s",
			draw: func(r *rand.Rand) history.Step { return lasting(r, "", "percent", pick(r, "10", "50")) },
			begin: func(s *simulation, step history.Step) func() {
				s.webhookFaults(func(f *faults) { f.webhookPercent = number(step, "percent", 10) })
				return func() { s.webhookFaults(func(f *faults) { f.webhookPercent = 0 }) }
			},
		},
		{
			name: "foreign-webhook", kind: "namespace-webhook", weight: 6, scoped: true, words: "another validating webhook (%[3]s) is in the way of the program's writes in %[1]s for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, pick(r, "namespaces/shop", "namespaces/shop", "namespaces/bank"), "mode", pick(r, "reject", "hang"))
			},
			begin: func(s *simulation, step history.Step) func() {
				namespace := namespaceOf(step.On)
				s.webhookFaults(func(f *faults) { f.foreign[namespace] = cmp.Or(step.With["mode"], "reject") })
				return func() { s.webhookFaults(func(f *faults) { delete(f.foreign, namespace) }) }
			},
		},
		{
			name: "slow-controllers", kind: "slow", weight: 2, words: "the workload controllers do nothing for %[2]s", draw: whole,
			begin: func(s *simulation, _ history.Step) func() {
				s.faults.slowControllers = true
				return func() { s.faults.slowControllers = false }
			},
		},
	}
}

// faultEntries are the faults as entries of the Catalogue.
func faultEntries() history.Catalogue {
	var entries history.Catalogue
	for _, k := range faultKinds() {
		entries = append(entries, history.Entry{
			Name: k.name, Fault: true, Weight: k.weight, WeightGraph: k.weightGraph,
			Draw: func(r *rand.Rand, _ []history.Step) history.Step {
				step := k.draw(r)
				step.Do = k.name
				return step
			},
			Words: func(step history.Step) string {
				return fmt.Sprintf(k.words+"%.0[1]s%.0[2]s%.0[3]s", cmp.Or(step.On, "all"), duration(step), parameters(step))
			},
			Check: checkFault,
		})
	}
	return entries
}
