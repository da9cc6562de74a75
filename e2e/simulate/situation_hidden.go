package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// hiddenForATime is an object that changes while it is hidden from its workload, mostly with a write of the workload meanwhile. The pods
// have the earlier content: the workload restarts when the object is no longer hidden.
func hiddenForATime(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "statefulsets/shop/store"), "secrets/shop/db"}
	if r.IntN(2) > 0 {
		p = tracked{pick(r, "deployments/shop/cart", "deployments/shop/web"), "configmaps/shop/extra"}
	}
	s := []func(*rand.Rand, tracked) situation{hiddenByFlags, hiddenByFlags, hiddenByExcludeLists, hiddenByAnnotation}[r.IntN(4)](r, p)
	meanwhile := []history.Step{p.edit("hidden", untilPrompt)}
	if r.IntN(4) > 0 {
		meanwhile = append(meanwhile, history.Step{
			Do: pick(r, "label-workload", "annotate-workload"), On: p.workload, Wait: history.Duration(time.Second),
			With: map[string]string{"value": "a"},
		})
	}
	s.workload, s.rest = p.workload, untilPrompt
	s.steps = slices.Concat(s.steps[:1], meanwhile, s.steps[1:], []history.Step{p.edit("shown", 2*untilPrompt)})
	return s
}

// hiddenByFlags are two upgrades of the installation.
func hiddenByFlags(r *rand.Rand, p tracked) situation {
	upgrade := func(flags string) history.Step {
		return history.Step{Do: "reconfigure", Wait: history.Duration(untilPrompt), With: map[string]string{"for": "30s", "flags": flags}}
	}
	asks := pick(r, "auto", "named", "patterns", "none")
	hide := untrackedFlag + "=configmaps,secrets"
	if asks == "patterns" {
		hide = dialectFlag + "=false"
	}
	if p.config == "secrets/shop/db" && r.IntN(2) > 0 {
		asks, hide = pick(r, "", "", "secret-auto", "none"), secretsFlag+"=false"
	}
	return situation{asks: asks, setup: automatic(asks), steps: []history.Step{upgrade(hide), upgrade("")}}
}

// hiddenByExcludeLists are two edits of the annotations of the workload.
func hiddenByExcludeLists(r *rand.Rand, p tracked) situation {
	ask := func(what string) history.Step {
		return history.Step{
			Do: act.AskReloader, On: p.workload, Wait: history.Duration(untilPrompt), With: map[string]string{"for": what, "lists": "removed"},
		}
	}
	if r.IntN(2) > 0 {
		return situation{asks: "auto", steps: []history.Step{ask("auto-but"), ask("auto")}}
	}
	return situation{asks: "none", setup: automatic("none"), steps: []history.Step{ask("but-all"), ask("none")}}
}

// hiddenByAnnotation are two edits of an annotation of the object.
func hiddenByAnnotation(r *rand.Rand, p tracked) situation {
	hide, show := p.mark("ignore", "true"), p.mark("ignore", pick(r, "absent", "false"))
	hide.Wait = history.Duration(untilPrompt)
	asks := pick(r, "auto", "named", "patterns", "none")
	return situation{asks: asks, setup: automatic(asks), steps: []history.Step{hide, show}}
}

// hiddenFromNewReplicas is an object that has changed while it was ignored, and replicas that start while its kind may not be listed: what
// they do not know of the object must not restart the workload. That it is shown again must, and so must a change of another object.
func hiddenFromNewReplicas(r *rand.Rand) situation {
	p := optionalObjects(r)
	resource, _, _ := strings.Cut(p.config, "/")
	step := func(do, on string, wait time.Duration, with map[string]string) history.Step {
		return history.Step{Do: do, On: on, Wait: history.Duration(wait), With: with}
	}
	hide, show := p.mark("ignore", "true"), p.mark("ignore", pick(r, "absent", "false"))
	hide.Wait, show.Wait = history.Duration(untilPrompt), history.Duration(6*time.Minute)
	stop := pick(r, "stop", "kill")
	steps := []history.Step{
		hide, p.edit("hidden", untilPrompt),
		step(withdrawPermissions, resource, betweenSituations, map[string]string{"for": "4m", "verbs": "list,watch"}),
		step(stop, "replica-0", betweenSituations, map[string]string{"for": "3s"}),
		step(stop, "replica-1", 0, map[string]string{"for": "3s"}),
	}
	if r.IntN(2) > 0 {
		steps = append(steps, p.beside().edit("beside", time.Duration(r.IntN(40))*time.Second))
	}
	return situation{
		workload: p.workload, asks: pick(r, "auto", "named", "patterns"), rest: untilPrompt,
		setup: func(setup *history.Setup) { setup.Replicas = 2 },
		steps: append(steps, show),
	}
}

// automatic returns what has the installation track what a workload references that asks for nothing.
func automatic(asks string) func(*history.Setup) {
	return func(setup *history.Setup) {
		setup.Flags = slices.DeleteFunc(slices.Clone(setup.Flags), func(flag string) bool { return flag == autoFlag })
		if asks == "none" {
			setup.Flags = append(setup.Flags, autoFlag)
		}
	}
}
