package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// A situation ends a history with a workload as in its manifest, with all objects that its pods require, after all earlier faults:
// nothing excuses what the program does about it.
type situation struct {
	workload string
	// asks is what the workload asks for by the annotations of Reloader; empty means that it has the lists of its manifest.
	asks string
	// rest is how long before the situation all earlier faults have ended.
	rest  time.Duration
	steps []history.Step
	// setup changes the installation; nil leaves it as it was drawn.
	setup func(*history.Setup)
	// undisturbed means that the history has no fault, so that no request takes longer by chance.
	undisturbed bool
}

// situationKind is a situation that random steps hardly ever make.
type situationKind struct {
	name string
	// weight is how often it is drawn, relative to others; one without a weight has a random stream of its own.
	weight int
	draw   func(r *rand.Rand) situation
	// graph means that it is about custom resources: only histories with any have it.
	graph bool
}

// situationKinds are all situations.
func situationKinds() []situationKind {
	return []situationKind{
		{name: "deletion-unseen", weight: 12, draw: deletionUnseen},
		{name: "request-revived", weight: 3, draw: requestRevived},
		{name: "writes-refused", weight: 2, draw: writesRefused},
		{name: "writes-hang", weight: 2, draw: writesHang},
		{name: "writes-denied", weight: 3, draw: writesWithoutPermission},
		{name: "denied-under-change", weight: 1, draw: deniedUnderChange},
		{name: "namespaces-unseen", weight: 2, draw: namespacesUnseen},
		{name: "leader-killed", weight: 3, draw: leaderKilled},
		{name: "constant-change", weight: 2, draw: constantChange},
		{name: "constant-conflict", weight: 2, draw: constantConflict},
		{name: "constant-passes", weight: 4, draw: constantPasses},
		{name: "key-rotated", weight: 2, draw: keyRotated},
		{name: "key-lost", weight: 3, draw: keyLost},
		{name: "field-moved", weight: 2, draw: fieldMoved},
		{name: "unstamped", weight: 5, draw: releasedUnstamped},
		{name: "relisted", weight: 3, draw: relistedUnseen},
		{name: "reloader", weight: 8, draw: reloaderAsked},
		{name: "created", weight: 4, draw: creationCounts},
		{name: "hidden", weight: 8, draw: hiddenForATime},
		{name: "hidden-from-new-replicas", weight: 3, draw: hiddenFromNewReplicas},
		{name: "strategy", weight: 4, draw: strategyKept},
		{name: "paused", weight: 4, draw: pausedReload},
		{name: "job", weight: 7, draw: jobCreatedAgain},
		{name: "job-interrupted", weight: 5, draw: jobInterrupted},
		{name: "job-frozen", weight: 5, draw: jobFrozen},
		{name: "run", weight: 10, draw: cronJobRun},
		{name: "flag-changed", weight: 4, draw: flagChanged},
		{name: "restored", weight: 4, draw: restoredFromSnapshot},
		{name: "stripped", draw: strippedForATime},
		{name: "behind", draw: restartedBehind},
		{name: "definition", draw: definitionTaken},
		{name: "elsewhere", draw: trackedElsewhere},
		{name: "sides", draw: sidesChanged},
		{name: "published", weight: 6, draw: published, graph: true},
	}
}

// SituationNames returns the names of all situations.
func SituationNames() []string {
	var names []string
	for _, k := range situationKinds() {
		names = append(names, k.name)
	}
	return names
}

// drawSituation draws a situation of a name, or any that fits a history, which has custom resources or not.
func drawSituation(r *rand.Rand, name string, graph bool) situation {
	var kinds []situationKind
	for _, k := range situationKinds() {
		if k.name == name {
			return k.draw(r)
		}
		if graph || !k.graph {
			kinds = append(kinds, slices.Repeat([]situationKind{k}, k.weight)...)
		}
	}
	return kinds[r.IntN(len(kinds))].draw(r)
}

const (
	// betweenSituations is how long all may settle before a situation and within it.
	betweenSituations = 20 * time.Second
	// untilPrompt is how long after most faults the oracle excuses no delay any more.
	untilPrompt = 75 * time.Second
)

// stage replaces the last steps of a history by a situation. A history that is too short for it stays as it is.
func stage(h *history.History, with situation) {
	var first []history.Step
	for _, config := range []string{"configmaps/shop/app", "configmaps/shop/extra", act.LateConfig, "secrets/shop/db", "secrets/shop/tls"} {
		first = append(first, history.Step{Do: act.CreateConfig, On: config})
	}
	situation := slices.Concat(first, []history.Step{recreated(with.workload, with.asks)}, with.steps)
	if len(h.Steps) <= len(situation) {
		return
	}
	if with.setup != nil {
		with.setup(&h.Setup)
	}
	before := slices.Clone(h.Steps[:len(h.Steps)-len(situation)])
	if with.undisturbed {
		replaceFaults(before)
	}
	situation[0].Wait = history.Duration(max(with.rest, betweenSituations) + remaining(before))
	h.Steps = append(before, situation...)
}

// replaceFaults puts a step that hardly ever does anything in the place of each fault.
func replaceFaults(steps []history.Step) {
	for i, step := range steps {
		if _, fault := findFault(step.Do); fault {
			steps[i] = history.Step{Do: act.CreateConfig, On: "configmaps/shop/app", Wait: step.Wait}
		}
	}
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
func recreated(workload, asks string) history.Step {
	step := history.Step{
		Do: act.RecreateWorkload, On: workload, Wait: history.Duration(5 * time.Second),
		With: map[string]string{"from": "manifest", "pause": "0s"},
	}
	if asks != "" {
		step.With["asks"] = asks
	}
	return step
}
