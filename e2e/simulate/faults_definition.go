package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// takeDefinition is the fault by which the API server does not have a custom kind of workloads for some time.
	takeDefinition = "take-definition"
	// The definition is deleted with its objects, which watches deliver or do not; or it does not serve the version, and the objects stay; or
	// one API server of several does not have it, while discovery shows it.
	wayDeleted, wayDeletedUnseen, wayUnserved, wayContradicted = "deleted", "deleted-unseen", "unserved", "contradicted"
	// kindAway and kindContradicted are the oracle's words for a kind that is not installed, and for one that only discovery shows.
	kindAway, kindContradicted = "kind-away", "kind-contradicted"
	// deletionTakes is how long the API server deletes the objects of a definition before it ends their watches.
	deletionTakes = time.Second
)

// definitionFaults have no weight: takenDefinitions puts them in the places of other faults, and a situation has them.
func definitionFaults() []faultKind {
	return []faultKind{{
		name: takeDefinition, kind: kindAway, scoped: true,
		words: "the API server does not have the definition of %[1]s (%[3]s) for %[2]s",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{On: world.Rollouts.Plural, With: map[string]string{
				"for": pick(r, "2s", "12s", "45s", "2m", longBlind), "way": pick(r, definitionWays()...),
			}}
		},
		begin: withoutDefinition,
	}}
}

func definitionWays() []string {
	return []string{wayDeleted, wayDeletedUnseen, wayUnserved, wayUnserved, wayUnserved, wayContradicted}
}

func aCustomKind(on string) error { return oneOf(on, world.Rollouts.Plural) }

// withoutDefinition takes the definition away. Watches deliver the deletions of what was there at first, if they do at all.
func withoutDefinition(s *simulation, step history.Step) func() {
	way, over := step.With["way"], false
	deletes := way == wayDeleted || way == wayDeletedUnseen
	take := func() {
		if over {
			return
		}
		s.faults.definitions = append(s.faults.definitions, way)
		s.serveDefinition()
		if deletes {
			s.deleteRollouts()
		}
	}
	if way == wayDeleted {
		s.deleteRollouts()
		s.after(deletionTakes, take)
	} else {
		take()
	}
	return func() {
		over = true
		if i := slices.Index(s.faults.definitions, way); i >= 0 {
			s.faults.definitions = slices.Delete(s.faults.definitions, i, i+1)
		}
		s.serveDefinition()
	}
}

// serveDefinition has the API server serve Rollouts as the faults that last leave them.
func (s *simulation) serveDefinition() {
	ways := s.faults.definitions
	if len(ways) == 0 {
		s.api.Serve(world.Rollouts)
		return
	}
	s.api.Withdraw(world.Rollouts, !slices.ContainsFunc(ways, func(way string) bool { return way != wayContradicted }))
}

// deleteRollouts deletes them as the API server does where it deletes their definition.
func (s *simulation) deleteRollouts() {
	for _, o := range s.api.List(world.Rollouts, "") {
		metadata := world.Meta(o)
		s.api.Remove(world.Key{Resource: world.Rollouts, Namespace: metadata.GetNamespace(), Name: metadata.GetName()})
	}
}

// takenDefinitions replaces some faults by ones of the definition of Rollouts, where the flags name these; in most histories none. It shifts
// no other choice of the seed.
func takenDefinitions(seed uint64, c history.Catalogue, flags []string, steps []history.Step) []history.Step {
	if !slices.ContainsFunc(flags, namesRollouts) {
		return steps
	}
	return insteadOfFaults(rand.New(rand.NewPCG(seed, 26)), oneInThree, c, steps, takeDefinition)
}

// namesRollouts reports whether a flag has the program look after Rollouts, or may do so.
func namesRollouts(flag string) bool {
	return flag == customKind || flag == configMapFlag || strings.HasPrefix(flag, argoFlag)
}

// definitionTaken is a Rollout whose definition is taken away and comes back, with changes before that, meanwhile and afterwards. A replica
// may end meanwhile, so that the next leader never sees the Rollout before.
func definitionTaken(r *rand.Rand) situation {
	p := tracked{act.Rollout, pick(r, "configmaps/shop/app", "configmaps/shop/extra", "secrets/shop/db")}
	soon := func() time.Duration { return time.Duration(r.IntN(40)) * 100 * time.Millisecond }
	k, _ := findFault(takeDefinition)
	fault, asks := k.draw(r), pick(r, "", "", "named", "auto")
	fault.Do, fault.Wait = takeDefinition, history.Duration(betweenSituations)
	if fault.With["way"] == wayContradicted && r.IntN(4) > 0 {
		fault.With["for"] = longBlind // so that it must be reported
	}
	steps := []history.Step{fault}
	if r.IntN(2) == 0 {
		fault.Wait = history.Duration(soon())
		steps = []history.Step{p.edit("taken-1", betweenSituations), fault}
	}
	if r.IntN(3) == 0 {
		steps = append(steps, history.Step{
			Do: pick(r, "stop", "kill"), On: "replica-0", Wait: history.Duration(soon()), With: map[string]string{"for": "1s"},
		})
	}
	steps = append(steps, p.edit("taken-2", 5*soon()))
	back := duration(fault) + soon()
	if fault.With["way"] != wayUnserved && fault.With["way"] != wayContradicted {
		again := recreated(p.workload, asks)
		again.Wait = history.Duration(back)
		steps, back = append(steps, again), soon()
	}
	steps = append(steps, p.edit("back-1", back), p.edit("back-2", 2*untilPrompt))
	return situation{workload: p.workload, asks: asks, rest: untilPrompt, steps: steps, setup: func(s *history.Setup) {
		if !slices.Contains(s.Flags, customKind) {
			s.Flags = append(slices.Clone(s.Flags), customKind)
		}
	}}
}

// takenOf is how many histories there are without a finale for each that ends with this situation.
const takenOf = 30

// stageTaken ends some histories with this situation. It shifts no other choice of the seed.
func stageTaken(seed uint64, h *history.History) {
	r := rand.New(rand.NewPCG(seed, 27))
	if r.IntN(takenOf) == 0 && !h.Setup.Graph && h.Setup.Second == nil {
		stage(h, definitionTaken(r))
	}
}
