package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// strippedForATime are changes while another webhook removes managed annotations of the workload, and one after that, when the pauses of
// the program are over.
func strippedForATime(r *rand.Rand) situation {
	const lasting = 6 * time.Minute
	p := anyTracked(r)
	k, _ := findFault(strippingWebhook)
	fault := k.draw(r)
	fault.Do, fault.On, fault.Wait = strippingWebhook, pick(r, "namespaces/shop", p.resource()), history.Duration(betweenSituations)
	fault.With["for"] = lasting.String()
	steps := []history.Step{fault, p.edit("stripped-1", betweenSituations), p.edit("stripped-2", untilPrompt)}
	if at := r.IntN(4); at > 0 { // of all, the annotations that are stored go with it
		release := history.Step{Do: "release", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"version": "7"}}
		steps = slices.Insert(steps, at, release)
	}
	return situation{
		workload: p.workload, asks: pick(r, "", "", "named", "auto"), rest: lasting + untilPrompt,
		steps: append(steps, p.edit("afterwards", 2*lasting+betweenSituations)),
	}
}

// strippedOf is how many histories without a finale there are for each that ends with this situation.
const strippedOf = 20

// stageStripped ends some histories with the situation in which annotations are removed. It shifts no other choice of the seed.
func stageStripped(seed uint64, h *history.History) {
	if r := rand.New(rand.NewPCG(seed, 22)); r.IntN(strippedOf) == 0 {
		stage(h, strippedForATime(r))
	}
}
