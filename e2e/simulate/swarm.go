package simulate

import (
	"math/rand/v2"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// swarm draws the weights of one history (Groce et al., "Swarm testing", ISSTA '12). Some entries are left out and some
// come often, so that acts follow each other that would rarely meet among all of them. The oracle is then not always busy
// excusing some fault, either.
func swarm(r *rand.Rand, c history.Catalogue, s history.Setup) map[string]int {
	weights := make(map[string]int, len(c))
	acts, ofRuns := 0, factor(r)
	for _, e := range c {
		// An act without a weight must take no random number: that would change what a seed draws.
		if e.Fault || outOfGraph(e, s) || e.Weight+e.WeightSSA+e.WeightGraph == 0 {
			continue
		}
		weight := e.Weight
		if s.TrackFields {
			weight += e.WeightSSA
		}
		if s.Graph {
			weight += e.WeightGraph
		}
		weights[e.Name] = unit * weight * factor(r)
		if slices.Contains(act.RunActs(), e.Name) { // one without the others shows little
			weights[e.Name] = unit * weight * ofRuns
		}
		acts += weights[e.Name]
	}
	if least := unit * editWeight; weights[editConfig] < least { // without edits there is nothing to judge
		acts += least - weights[editConfig]
		weights[editConfig] = least
	}
	share(r, c, weights, acts, s)
	return weights
}

// outOfGraph reports whether an entry is about custom resources, which this history does not have.
func outOfGraph(e history.Entry, s history.Setup) bool {
	return !s.Graph && e.WeightGraph > 0 && e.Weight == 0
}

const (
	// unit keeps small shares of faults apart.
	unit = 100
	// editConfig is the act that every history has, with at least this weight.
	editConfig, editWeight = "edit-config", 20
)

// factor is how much more often an act is drawn.
func factor(r *rand.Rand) int { return []int{0, 0, 1, 1, 1, 5, 20}[r.IntN(7)] }

// share sets the weights of faults: none, or some kinds, as a part of all steps.
func share(r *rand.Rand, c history.Catalogue, weights map[string]int, acts int, s history.Setup) {
	percent := []int{0, 3, 8, 15, 30}[r.IntN(5)]
	chance := []int{8, 25, 60, 100}[r.IntN(4)] // of each kind to be in it, in percent
	total := 0
	for _, e := range c {
		// A fault without a weight must take no random number, either.
		if !e.Fault || outOfGraph(e, s) || e.Weight+e.WeightGraph == 0 {
			continue
		}
		weights[e.Name] = 0
		if r.IntN(100) < chance {
			weights[e.Name] = e.Weight
			if s.Graph {
				weights[e.Name] += e.WeightGraph
			}
			total += weights[e.Name]
		}
	}
	for _, e := range c {
		if e.Fault && total > 0 {
			weights[e.Name] = weights[e.Name] * acts * percent / (100 - percent) / total
		}
	}
}

// pace draws how fast the steps follow each other.
func pace(r *rand.Rand) history.Pace {
	return []history.Pace{history.Mixed, history.Mixed, history.Quick, history.Quick, history.Calm}[r.IntN(5)]
}
