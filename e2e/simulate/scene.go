package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// A scene ends a history with a workload as in its manifest, with all objects that its pods require, after all earlier faults:
// nothing excuses what the program does about it.

// betweenScenes is how long all may settle before a scene and within it.
const betweenScenes = 20 * time.Second

// watched replaces the last steps by a scene in which one deletion, which restarts a workload, happens while its watch is blind:
// mostly in the way after which nothing is left to list.
func watched(r *rand.Rand, steps []history.Step) []history.Step {
	type pair struct{ workload, config string }
	pairs := []pair{ // the pods do not require these objects
		{"deployments/shop/web", "configmaps/shop/extra"},
		{"deployments/shop/web", "configmaps/shop/app"},
		{"deployments/shop/web", "secrets/shop/db"},
		{"deployments/shop/cart", "configmaps/shop/extra"},
		{"statefulsets/shop/store", "secrets/shop/tls"},
		{"daemonsets/shop/agent", act.LateConfig},
	}
	p := pairs[r.IntN(len(pairs))]
	resource, _, _ := strings.Cut(p.config, "/")
	fault := blindness(r, resource)
	if r.IntN(4) > 0 {
		fault.Do, fault.On = "fold-watches", resource
	}
	deletion := history.Step{Do: act.DeleteConfig, On: p.config, Wait: history.Duration(time.Duration(r.IntN(20)) * 100 * time.Millisecond)}
	return staged(steps, p.workload, fault, deletion)
}

// revived replaces the last steps by a scene in which a request for a reload is stored while the webhook is away, copied to a
// ReplicaSet, and brought back by an undo.
func revived(r *rand.Rand, steps []history.Step) []history.Step {
	workload := pick(r, "deployments/shop/cart", "deployments/shop/web")
	edit := func(value string, wait time.Duration) history.Step {
		return history.Step{
			Do: editConfig, On: "configmaps/shop/app", Wait: history.Duration(wait),
			With: map[string]string{"key": "greeting", "value": value},
		}
	}
	return staged(steps, workload,
		history.Step{Do: "webhook-away", Wait: history.Duration(betweenScenes), With: map[string]string{"for": pick(r, "5s", "12s")}},
		edit("revived-1", time.Second), edit("revived-2", betweenScenes),
		history.Step{Do: "undo", On: workload, Wait: history.Duration(betweenScenes), With: map[string]string{"back": pick(r, "1", "2", "2")}})
}

// staged replaces the last steps by those of a scene about a workload, which begins when the faults before it have ended.
func staged(steps []history.Step, workload string, scene ...history.Step) []history.Step {
	var stage []history.Step
	for _, config := range []string{"configmaps/shop/app", "configmaps/shop/extra", act.LateConfig, "secrets/shop/db", "secrets/shop/tls"} {
		stage = append(stage, history.Step{Do: act.CreateConfig, On: config})
	}
	scene = slices.Concat(stage, []history.Step{recreated(workload)}, scene)
	if len(steps) <= len(scene) {
		return steps
	}
	steps = slices.Clone(steps[:len(steps)-len(scene)])
	scene[0].Wait = history.Duration(betweenScenes + remaining(steps))
	return append(steps, scene...)
}

// remaining is how long the faults of some steps last after the last of the steps.
func remaining(steps []history.Step) time.Duration {
	var now, end time.Duration
	for _, step := range steps {
		now += time.Duration(step.Wait)
		if _, fault := findFault(step.Do); fault {
			end = max(end, now+duration(step))
		}
	}
	return max(0, end-now)
}

// recreated is a step that makes a workload what its manifest says, whatever has become of it.
func recreated(workload string) history.Step {
	return history.Step{
		Do: act.RecreateWorkload, On: workload, Wait: history.Duration(5 * time.Second),
		With: map[string]string{"from": "manifest", "pause": "0s"},
	}
}
