package simulate

import (
	"math/rand/v2"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// DrawOptions say which histories are drawn.
type DrawOptions struct {
	// Steps of each history.
	Steps int
	// Faults tells that faults are among the steps.
	Faults bool
}

// Draw makes the history of a seed.
func Draw(seed uint64, o DrawOptions) history.History {
	r := rand.New(rand.NewPCG(seed, 0))
	h := history.History{Form: history.Form, Seed: seed, Setup: setup(r, o)}
	c := Catalogue()
	h.Steps = history.Draw(r, c, history.DrawOptions{
		Steps: o.Steps, Faults: o.Faults, SSA: h.Setup.TrackFields, Weights: swarm(r, c, h.Setup.TrackFields), Pace: pace(r),
	})
	return h
}

// setup draws an installation: mostly an ordinary one.
func setup(r *rand.Rand, o DrawOptions) history.Setup {
	s := history.Setup{Replicas: replicas(r, o), TrackFields: r.IntN(10) == 0, NoStreamingLists: r.IntN(6) == 0}
	s.OtherWebhooks = []string{"", "", "before", "after", "around", "checksum"}[r.IntN(6)]
	switch r.IntN(9) {
	case 0:
		s.Flags = []string{"--settle=0s", "--refractory=0s"}
	case 1:
		s.Flags = []string{"--settle=3s", "--settle-max=8s", "--refractory=20s"}
	case 2:
		s.Flags = []string{"--missing-required=reload"}
	case 3:
		s.Flags = []string{"--hash=revision"}
	case 4:
		s.Flags = []string{"--namespace-selector=team=shop"}
	case 5:
		s.Flags = []string{"--workers=1"}
	}
	if o.Faults && r.IntN(8) == 0 {
		s.FailurePolicy = "Fail"
	}
	return s
}

// replicas is how many there are: without faults, more than one make little difference.
func replicas(r *rand.Rand, o DrawOptions) int {
	if o.Faults {
		return []int{1, 2, 2, 3}[r.IntN(4)]
	}
	return []int{1, 1, 1, 2}[r.IntN(4)]
}
