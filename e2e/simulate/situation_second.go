package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// trackedElsewhere are changes and a release of a workload of which a second installation tracks nothing: it leaves what the first one writes.
func trackedElsewhere(r *rand.Rand) situation {
	p := anyTracked(r)
	steps := []history.Step{
		p.edit("elsewhere-1", betweenSituations),
		{Do: "release", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"version": "7"}},
		p.edit("elsewhere-2", untilPrompt),
		{Do: act.LabelWorkload, On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"value": pick(r, "a", "b")}},
		p.edit("elsewhere-3", time.Duration(r.IntN(30))*100*time.Millisecond),
	}
	before, replicas := r.IntN(2) == 0, 1+r.IntN(2)
	return situation{workload: p.workload, asks: pick(r, "named", "auto"), rest: untilPrompt, steps: steps, setup: func(s *history.Setup) {
		s.Flags = withSelection(withoutFlags(s.Flags, dialectFlag, autoFlag), "")
		s.Second = &history.Second{Replicas: replicas, Scope: unread, Before: before}
	}}
}

// sidesChanged are changes around the moments at which a workload goes from one installation to the other, and back.
func sidesChanged(r *rand.Rand) situation {
	p := anyTracked(r)
	soon := func() time.Duration { return time.Duration(r.IntN(30)) * 100 * time.Millisecond }
	label := func(value string, wait time.Duration) history.Step {
		return history.Step{Do: act.LabelWorkload, On: p.workload, Wait: history.Duration(wait), With: map[string]string{"value": value}}
	}
	steps := []history.Step{
		label("a", betweenSituations), p.edit("sides-1", betweenSituations), label("b", soon()),
		p.edit("sides-2", betweenSituations), p.edit("sides-3", untilPrompt), label("a", soon()), p.edit("sides-4", soon()),
	}
	before, replicas := r.IntN(2) == 0, 1+r.IntN(2)
	return situation{workload: p.workload, asks: pick(r, "", "", "named", "auto"), rest: untilPrompt, steps: steps, setup: func(s *history.Setup) {
		s.Flags = withSelection(s.Flags, "--object-selector=note!=b")
		s.Second = &history.Second{Replicas: replicas, Scope: "--object-selector=note=b", Before: before}
	}}
}

// besideOf is how many histories there are without a finale for each that ends with a situation about a second installation.
const besideOf = 15

// stageBeside ends some histories with such a situation. It shifts no other choice of the seed.
func stageBeside(seed uint64, h *history.History) {
	r := rand.New(rand.NewPCG(seed, 24))
	if r.IntN(besideOf) > 0 || h.Setup.Graph {
		return
	}
	if r.IntN(2) == 0 {
		stage(h, trackedElsewhere(r))
	} else {
		stage(h, sidesChanged(r))
	}
}
