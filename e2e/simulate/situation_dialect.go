package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// adopted is how long after a change of what a workload tracks each change of an object counts.
const adopted = 25 * time.Second

// reloaderAsked is a workload that uses the second dialect from its creation on, and one change that restarts it, or must not.
func reloaderAsked(r *rand.Rand) situation {
	situations := []func(*rand.Rand) situation{
		editOfTracked, editOfMarked, editOfIgnored, editOfExcluded, editOfAnyWhileOff, comingAndGoing, returnWithOtherContent, lateCreation,
	}
	s := situations[r.IntN(len(situations))](r)
	s.rest = untilPrompt
	return s
}

// mark is a step that sets an annotation of Reloader on the object.
func (t tracked) mark(name, value string) history.Step {
	return history.Step{
		Do: act.AnnotateForReloader, On: t.config, Wait: history.Duration(adopted), With: map[string]string{"annotation": name, "value": value},
	}
}

// does is a step on the object.
func (t tracked) does(do string) history.Step {
	return history.Step{Do: do, On: t.config, Wait: history.Duration(adopted)}
}

// optionalObjects are pairs in which the pods start without the object.
func optionalObjects(r *rand.Rand) tracked {
	all := []tracked{
		{"deployments/shop/cart", "configmaps/shop/extra"},
		{"deployments/shop/web", "configmaps/shop/extra"},
		{"deployments/shop/web", "configmaps/shop/app"},
	}
	return all[r.IntN(len(all))]
}

// beside is the other one of two ConfigMaps.
func (t tracked) beside() tracked {
	other := tracked{t.workload, "configmaps/shop/app"}
	if t.config == other.config {
		other.config = "configmaps/shop/extra"
	}
	return other
}

// editOfTracked restarts the workload.
func editOfTracked(r *rand.Rand) situation {
	p := anyTracked(r)
	asks := pick(r, "auto", "named", "patterns", "on-template", "on-template")
	if p.config == "secrets/shop/db" { // web lists it, and does not reference it
		asks = pick(r, "named", "patterns")
	}
	return situation{workload: p.workload, asks: asks, steps: []history.Step{p.edit("tracked", adopted)}}
}

// editOfMarked restarts a workload that searches only while the object has the mark. The mark itself restarts nothing.
func editOfMarked(r *rand.Rand) situation {
	p := optionalObjects(r)
	steps := []history.Step{p.beside().mark("match", "true"), p.mark("match", pick(r, "true", "false")), p.edit("marked-1", adopted)}
	if r.IntN(2) > 0 {
		steps = append(steps, p.mark("match", pick(r, "true", "absent")), p.edit("marked-2", adopted))
	}
	return situation{workload: p.workload, asks: "search", steps: steps}
}

// editOfIgnored restarts nothing, until the object is no longer ignored.
func editOfIgnored(r *rand.Rand) situation {
	p := optionalObjects(r)
	steps := []history.Step{p.mark("ignore", "true"), p.edit("ignored", adopted)}
	if r.IntN(2) > 0 {
		steps = append(steps, p.mark("ignore", pick(r, "absent", "false")), p.edit("counts-again", adopted))
	}
	return situation{workload: p.workload, asks: pick(r, "auto", "configmap-auto", "named", "patterns"), steps: steps}
}

// editOfExcluded restarts nothing.
func editOfExcluded(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "deployments/shop/web"), "configmaps/shop/extra"}
	return situation{workload: p.workload, asks: "auto-but", steps: []history.Step{p.edit("excluded", adopted)}}
}

// editOfAnyWhileOff restarts nothing: an explicit false turns the dialect off.
func editOfAnyWhileOff(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "deployments/shop/web"), "configmaps/shop/app"}
	return situation{workload: p.workload, asks: "auto-false", steps: []history.Step{p.edit("off", adopted)}}
}

// comingAndGoing is a deletion, and a creation with equal content: neither restarts anything.
func comingAndGoing(r *rand.Rand) situation {
	p := optionalObjects(r)
	return situation{
		workload: p.workload, asks: pick(r, "auto", "configmap-auto", "named", "patterns"),
		steps: []history.Step{p.does(act.DeleteConfig), p.does(act.CreateConfig)},
	}
}

// returnWithOtherContent restarts the workload: the pods have the earlier content.
func returnWithOtherContent(r *rand.Rand) situation {
	p := optionalObjects(r)
	back := p.does(act.RecreateConfigChanged)
	back.With = map[string]string{"key": p.key(), "value": "other", "pause": adopted.String()}
	return situation{workload: p.workload, asks: pick(r, "auto", "configmap-auto", "named", "patterns"), steps: []history.Step{back}}
}

// lateCreation is a creation, which restarts nothing, and then a change, which does.
func lateCreation(r *rand.Rand) situation {
	p := tracked{"daemonsets/shop/agent", act.LateConfig}
	asks := pick(r, "auto", "configmap-auto", "named")
	again := recreated(p.workload, asks)
	steps := []history.Step{p.does(act.DeleteConfig), again, p.does(act.CreateConfig)}
	if r.IntN(2) > 0 {
		steps = append(steps, p.edit("later", adopted))
	}
	return situation{workload: p.workload, asks: asks, steps: steps}
}

// creationCounts is a creation that restarts the workload, if the program runs with the flag: often with a write of the workload that
// asks for nothing else, just before or after it.
func creationCounts(r *rand.Rand) situation {
	p := tracked{"daemonsets/shop/agent", act.LateConfig}
	asks := pick(r, "auto", "named", "patterns", "patterns", "patterns")
	if asks == "patterns" { // it matches the object for every workload
		p.workload = pick(r, "deployments/shop/cart", "deployments/shop/web", "daemonsets/shop/agent")
	}
	again := recreated(p.workload, asks)
	again.Wait = history.Duration(adopted)
	creation := p.does(act.CreateConfig)
	write := history.Step{
		Do: "label-workload", On: p.workload, Wait: history.Duration(r.IntN(30)) * history.Duration(time.Millisecond),
		With: map[string]string{"value": "a"},
	}
	steps := []history.Step{p.does(act.DeleteConfig), again, creation}
	switch r.IntN(3) {
	case 0:
		steps = append(steps, write)
	case 1:
		creation.Wait, write.Wait = write.Wait, creation.Wait
		steps = append(steps[:2], write, creation)
	}
	return situation{workload: p.workload, asks: asks, rest: untilPrompt, steps: steps, setup: func(setup *history.Setup) {
		if !slices.Contains(setup.Flags, createFlag) {
			setup.Flags = append(slices.Clone(setup.Flags), createFlag)
		}
	}}
}
