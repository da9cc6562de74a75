package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// flagChanged is an upgrade with another value of a flag, and what must not restart a workload, or must, behind it.
func flagChanged(r *rand.Rand) situation {
	s := []func(*rand.Rand) situation{rolledBackAfterUpgrade, rolledBackAfterUpgrade, changedDuringUpgrade, deletedBeforeUpgrade}[r.IntN(4)](r)
	s.rest = untilPrompt
	return s
}

// upgraded is a step that changes a flag.
func upgraded(value string, wait time.Duration) history.Step {
	return history.Step{Do: changeFlag, Wait: history.Duration(wait), With: map[string]string{"for": "30s", "flags": value}}
}

// rolledBackAfterUpgrade is a release whose pods do not start, and its rollback: the pods that were there before stay.
func rolledBackAfterUpgrade(r *rand.Rand) situation {
	p := anyTracked(r)
	release := history.Step{Do: "release-broken", On: p.workload, Wait: history.Duration(betweenSituations)}
	undo := history.Step{Do: "undo", On: p.workload, Wait: history.Duration(2 * untilPrompt), With: map[string]string{"back": "1"}}
	steps := []history.Step{p.edit("before", betweenSituations), release, upgraded(pick(r, flagValues()...), betweenSituations), undo}
	if r.IntN(2) == 0 {
		steps = append(steps, p.edit("after", betweenSituations))
	}
	return situation{workload: p.workload, steps: steps}
}

// changedDuringUpgrade are changes before, while and after some replicas have the one value and some the other.
func changedDuringUpgrade(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{
		workload: p.workload, asks: pick(r, "", "", "named", "patterns"),
		setup: func(setup *history.Setup) { setup.Replicas = max(2, setup.Replicas) },
		steps: []history.Step{
			p.edit("before", betweenSituations), upgraded(pick(r, flagValues()...), betweenSituations),
			p.edit("meanwhile", time.Duration(r.IntN(12))*time.Second), p.edit("after", 2*untilPrompt),
		},
	}
}

// deletedBeforeUpgrade is a deletion that counts only from then on, or never.
func deletedBeforeUpgrade(r *rand.Rand) situation {
	p := optionalObjects(r)
	return situation{workload: p.workload, asks: pick(r, "auto", "named"), steps: []history.Step{
		{Do: act.DeleteConfig, On: p.config, Wait: history.Duration(betweenSituations)},
		upgraded(pick(r, deleteFlag, deleteFlag, createFlag), betweenSituations),
	}}
}
