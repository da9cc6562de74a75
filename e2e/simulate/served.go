package simulate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// onServed has half of the faults of the watches of Deployments meet what only some installations watch: custom resources, or
// namespaces. Faults are drawn without a look at the installation. It shifts no other choice of the seed.
func onServed(steps []history.Step, h history.History) []history.Step {
	var others []string
	if h.Setup.Graph {
		others = append(others, world.Filters.Plural, world.Proxies.Plural)
	}
	if slices.ContainsFunc(h.Setup.Flags, func(flag string) bool { return strings.HasPrefix(flag, namespaceFlag) }) {
		others = append(others, world.Namespaces.Plural)
	}
	if len(others) == 0 {
		return steps
	}
	r := rand.New(rand.NewPCG(h.Seed, 7))
	steps = slices.Clone(steps)
	for i, step := range steps {
		if !ofWatches(step) || step.On != world.Deployments.Plural || r.IntN(2) == 0 {
			continue
		}
		steps[i].On, steps[i].With = pick(r, others...), maps.Clone(step.With)
		if step.Do == withdrawPermissions && strings.Contains(step.With["verbs"], "watch") && r.IntN(2) == 0 {
			steps[i].With["for"] = longBlind
		}
	}
	return steps
}

// namespacesUnseen is an installation that selects namespaces by their labels, and may not watch them for a while.
func namespacesUnseen(r *rand.Rand) situation {
	p := anyTracked(r)
	denied := history.Step{
		Do: withdrawPermissions, On: world.Namespaces.Plural, Wait: history.Duration(betweenSituations),
		With: map[string]string{"for": longBlind, "verbs": pick(r, "list,watch", "get,list,watch")},
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: []history.Step{denied, p.edit("unseen-1", betweenSituations)}, setup: func(s *history.Setup) {
		s.Flags = append(withScope(s.Flags, nil), namespaceFlag+"team=shop")
	}}
}

// ofWatches reports whether a step is a fault of watches, of their lists, or of the permissions to open them.
func ofWatches(step history.Step) bool {
	return step.Do == withdrawPermissions || step.Do == stopLists || slices.ContainsFunc(watchFaults(), func(k faultKind) bool { return k.name == step.Do })
}
