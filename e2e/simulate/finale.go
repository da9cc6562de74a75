package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// finaleOf is how many histories with faults there are for each that has a finale.
const finaleOf = 2

// unstagedOf is how many finales there are for each that has no situation.
const unstagedOf = 6

// finale replaces the last steps by a fault and one or two changes of config objects that it hides. Earlier in a history, the
// next write that concerns the same workload makes up for what the program has missed; after a finale nothing does. In some
// histories the fault meets whatever the steps before have left; in the others a situation is set for it (situation.go).
func finale(r *rand.Rand, c history.Catalogue, h *history.History) {
	if r.IntN(unstagedOf) > 0 {
		stage(h, drawSituation(r, "", h.Setup.Graph))
		return
	}
	steps := h.Steps
	changes := 1 + r.IntN(2)
	if len(steps) <= 1+changes {
		return
	}
	steps = slices.Clone(steps[:len(steps)-1-changes])
	resource := pick(r, "configmaps", "configmaps", "secrets")
	steps = append(steps, blindness(r, resource))
	for n := range changes {
		do := pick(r, act.DeleteConfig, act.CreateConfig, act.RecreateConfigChanged, editConfig)
		if n == 0 && r.IntN(4) > 0 { // the state that is observed least: there is nothing left to list
			do = act.DeleteConfig
		}
		steps = append(steps, drawOn(r, c, do, resource, steps))
	}
	h.Steps = steps
}

// blindness draws a fault that hides changes of a resource for some seconds. It begins when all may have settled.
func blindness(r *rand.Rand, resource string) history.Step {
	step := history.Step{
		Do: pick(r, "fold-watches", "fold-watches", "fold-watches", "fold-watches", "hold-watches", "lag", "kill"),
		On: resource, Wait: history.Duration(5 * time.Second), With: map[string]string{"for": "8s"},
	}
	if step.Do == "lag" || step.Do == "kill" {
		step.On = anyReplica(r)
	}
	return step
}

// drawOn draws an act on an object of a resource, soon after the step before. An object that the history has deleted is not
// deleted again, if there is another.
func drawOn(r *rand.Rand, c history.Catalogue, do, resource string, before []history.Step) history.Step {
	e, _ := c.Find(do)
	var step history.Step
	for range 30 {
		step = e.Draw(r, before)
		if strings.HasPrefix(step.On, resource+"/") && (do != act.DeleteConfig || mayExist(before, step.On)) {
			break
		}
	}
	step.Do, step.Wait = do, history.Duration(time.Duration(r.IntN(20))*100*time.Millisecond)
	return step
}

// mayExist reports whether a history has not deleted a config object last; one that workloads list does not exist at first.
func mayExist(steps []history.Step, on string) bool {
	for _, step := range slices.Backward(steps) {
		if step.On == on && (step.Do == act.DeleteConfig || step.Do == act.CreateConfig) {
			return step.Do == act.CreateConfig
		}
	}
	return on != act.LateConfig
}
