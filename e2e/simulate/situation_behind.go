package simulate

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// restartedBehind is a replica that starts again soon after a reload, and reads from an API server that is behind: there the reload is due.
func restartedBehind(r *rand.Rand) situation {
	p := anyTracked(r)
	change := p.edit("behind", betweenSituations)
	if r.IntN(2) == 0 {
		p = tracked{pick(r, "deployments/shop/web", "daemonsets/shop/agent"), act.LateConfig}
		change = history.Step{Do: act.DeleteConfig, On: p.config, Wait: history.Duration(betweenSituations)}
	}
	return situation{workload: p.workload, steps: []history.Step{
		change,
		{Do: "lag", On: "replica-0", Wait: history.Duration(12 * time.Second), With: map[string]string{
			"by": strconv.Itoa(20 + r.IntN(100)), "for": "50s",
		}},
	}, setup: func(s *history.Setup) { s.Replicas, s.NoStreamingLists = 1, true }}
}

// behindOf is how many histories there are without a finale for each that ends with this situation.
const behindOf = 30

// stageBehind ends some histories with this situation. It shifts no other choice of the seed.
func stageBehind(seed uint64, h *history.History) {
	r := rand.New(rand.NewPCG(seed, 25))
	if r.IntN(behindOf) == 0 && !h.Setup.Graph && h.Setup.Second == nil {
		stage(h, restartedBehind(r))
	}
}
