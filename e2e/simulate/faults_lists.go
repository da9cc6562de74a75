package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// stopLists is the fault by which lists do not come to their end.
	stopLists = "stop-lists"
	// A list has no answer, stops behind some of its items, or ends there as if that was all of it.
	howSilent, howPart, howShort = "silent", "part", "short"
	// listsShort is the oracle's word for lists that end early. A watch that lists nothing before it works all the same.
	listsShort = "lists-short"
)

// listFaults are about lists. They have no weight: stoppedLists puts them in the places of other faults.
func listFaults() []faultKind {
	return []faultKind{{
		name: stopLists, kind: "watch-refused", scoped: true,
		words: "watches of %[1]s end, and lists of them have no answer, or the first items only (%[3]s), for %[2]s",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{On: pick(r, "configmaps", "secrets", "deployments"), With: map[string]string{
				"for": pick(r, "5s", "45s", "2m", longBlind), "how": pick(r, howSilent, howPart, howShort),
			}}
		},
		begin: func(s *simulation, step history.Step) func() {
			r := stoppedRule(step)
			s.faults.rules = append(s.faults.rules, r)
			s.eachWatch(step.On, (*apiserver.Watch).Expire)
			return func() { s.faults.remove(r) }
		},
	}}
}

// stoppedRule stops lists, and streaming ones. Other watches have no answer where lists hang: the resource cannot be seen then.
func stoppedRule(step history.Step) *rule {
	how := step.With["how"]
	return &rule{
		percent: 100, resource: step.On, verbs: []string{"list", "watch"},
		fate: func(s *simulation, call *world.Call) apiserver.Fate {
			lists := call.Verb == "list" || strings.Contains(call.Path, "sendInitialEvents=true")
			fate := apiserver.Fate{Hang: how != howShort}
			if lists && how != howSilent {
				fate.Short = 1 + s.chance(call).IntN(3)
			}
			return fate
		},
	}
}

// stoppedLists replaces some faults by ones of lists; in most histories none. It shifts no other choice of the seed.
func stoppedLists(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	return insteadOfFaults(rand.New(rand.NewPCG(seed, 17)), oneInThree, c, steps, stopLists)
}

// insteadOfFaults replaces some faults by ones of a name, in one history of some.
func insteadOfFaults(r *rand.Rand, of int, c history.Catalogue, steps []history.Step, name string) []history.Step {
	if r.IntN(of) > 0 {
		return steps
	}
	drawn, _ := c.Find(name)
	steps = slices.Clone(steps)
	for i, old := range steps {
		if _, fault := findFault(old.Do); fault && r.IntN(oneInThree) == 0 {
			steps[i] = drawn.Draw(r, steps[:i])
			steps[i].Wait = old.Wait
		}
	}
	return steps
}
