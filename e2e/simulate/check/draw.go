package check

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// installed is the installation of most histories. What an act writes at once is one change within the settle time: it is the default
// one, which a machine must stall for to make them two.
func installed(trackFields bool) history.Setup {
	return history.Setup{Replicas: 1, Flags: []string{"--refractory=0s"}, TrackFields: trackFields}
}

// variants are installations whose histories leave the same on a fast and on a slow machine. Some have two replicas, flags that decide what
// is written and what restarts a workload, or other mutating webhooks.
func variants() []history.Setup {
	return []history.Setup{
		{Replicas: 1},
		{Replicas: 2, Flags: []string{"--reload-strategy=env-vars"}},
		{Replicas: 2, Flags: []string{"--hash=revision"}, OtherWebhooks: "around"},
		{Replicas: 1, Flags: []string{autoReloadAll, "--missing-required=reload"}},
		{Replicas: 1, Flags: []string{"--reload-strategy=annotations"}, OtherWebhooks: "after"},
		{Replicas: 2, Flags: []string{"--missing-required=reload"}, OtherWebhooks: "before"},
	}
}

// autoReloadAll is a flag, and with two dashes less the component that has the webhook called for all workloads.
const autoReloadAll = "--auto-reload-all"

// variant is the installation of the drawn history of a seed.
func variant(seed uint64, trackFields bool) history.Setup {
	all, plain := variants(), installed(trackFields)
	chosen := all[seed%uint64(len(all))]
	chosen.Flags, chosen.TrackFields = slices.Concat(plain.Flags, chosen.Flags), trackFields
	return chosen
}

// atRest is after which time all has come to rest between two writes of an act: longer than the settle time by far.
const atRest = "3s"

// drawn makes the history of a seed, without faults.
func drawn(seed uint64, steps int) history.History {
	h := simulate.Draw(seed, simulate.DrawOptions{Steps: steps, BuiltinKinds: true})
	h.Setup = variant(seed, h.Setup.TrackFields)
	h.Steps = tamed(h.Steps)
	return h
}

// tours deals out all acts, in an order that the seed decides, to three histories: each act occurs once.
func tours(seed uint64) []history.History {
	const n = 3
	r := rand.New(rand.NewPCG(seed, 0))
	catalogue := act.Catalogue()
	all := make([]history.History, n)
	for i, at := range r.Perm(len(catalogue)) {
		h := &all[i%n]
		if aboutRollouts(catalogue[at].Name) || catalogue[at].WeightGraph > 0 { // the control plane serves no such kind
			continue
		}
		h.Form, h.Seed, h.Setup = history.Form, seed+uint64(i%n), installed(true)
		h.Steps = append(h.Steps, tamed([]history.Step{catalogue[at].Draw(r, h.Steps)})...)
	}
	return all
}

// aboutRollouts reports whether an act has no other target than the Rollout.
func aboutRollouts(name string) bool {
	return slices.Contains([]string{act.CreateRollout, act.AskRestart, act.RestartRollout}, name)
}

// tamed returns steps that lead to the same on a fast and on a slow machine: what an act does at intervals is done at once,
// or so late that all has settled; and what users and the program would do in turns is done once.
func tamed(steps []history.Step) []history.Step {
	calm := make([]history.Step, 0, len(steps))
	for _, s := range steps {
		s.With = maps.Clone(s.With)
		for _, name := range slices.Sorted(maps.Keys(s.With)) {
			s.With[name] = tame(s.Do, name, s.With[name])
		}
		calm = append(calm, s)
	}
	return calm
}

func tame(do, parameter, value string) string {
	if _, err := time.ParseDuration(value); err != nil && parameter == "for" {
		return value // it says what a workload asks for
	}
	if parameter == "period" && value != "absent" && value != "soon" {
		return act.ShortPause // it must be over when the next step begins
	}
	if parameter == "policy" && value == "Forbid" {
		return "Replace" // a run that waits is tried again ever more rarely
	}
	if do == act.DeleteOrphan && value == "nothing" {
		return "export" // what belongs to nothing has a name that chance decides
	}
	return tameTime(do, parameter, value)
}

func tameTime(do, parameter, value string) string {
	switch parameter {
	case "pause":
		if value != "0s" {
			return atRest
		}
	case "gap", "every", "after":
		return "0s"
	case "undo":
		return atRest
	case "for":
		if do == "fill-annotations" {
			return atRest // the Deployment controller copies them meanwhile, or it does not: here it always does
		}
		return "0s"
	case "times":
		return "1"
	case "n":
		return "10"
	}
	return value
}

// histories are all that are compared, by name: those written down, all acts dealt out to some, and some of n seeds.
func histories(seed uint64, n int) map[string]history.History {
	all := map[string]history.History{}
	for name, steps := range written() {
		all[name] = history.History{Form: history.Form, Seed: 1, Setup: installed(false), Steps: steps}
	}
	for i, h := range tours(seed) {
		all[fmt.Sprintf("tour %d", i+1)] = h
	}
	for i := range uint64(max(n, 0)) {
		all[fmt.Sprintf("seed %d", seed+i)] = drawn(seed+i, 15)
	}
	return all
}
