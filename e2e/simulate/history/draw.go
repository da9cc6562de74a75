package history

import (
	"math/rand/v2"
	"time"
)

// DrawOptions say what Draw may draw.
type DrawOptions struct {
	// Steps is how many.
	Steps int
	// Faults allows entries that are faults.
	Faults bool
	// SSA allows entries that need server-side apply, which needs Setup.TrackFields.
	SSA bool
	// Graph allows entries about custom resources, which need Setup.Graph.
	Graph bool
	// Weights replaces the weights of entries by name, e.g. for histories about one thing; 0 switches an entry off.
	Weights map[string]int
	// Pace is how fast the steps follow each other.
	Pace Pace
}

// Pace is how fast the steps of a history follow each other.
type Pace int

const (
	// Mixed has every kind of pause.
	Mixed Pace = iota
	// Quick has mostly pauses that are shorter than the gates.
	Quick
	// Calm has mostly pauses in which all settles, so that each step is judged by itself.
	Calm
)

// Draw makes the steps of a random history. The same generator, catalogue and options give the same steps. Without any
// entry to draw from there are none.
func Draw(r *rand.Rand, c Catalogue, o DrawOptions) []Step {
	weights := make([]int, len(c))
	total := 0
	for i, e := range c {
		weights[i] = o.weight(e)
		total += weights[i]
	}
	if total == 0 {
		return nil
	}
	steps := make([]Step, 0, o.Steps)
	for range o.Steps {
		wait := o.Pace.draw(r)
		e := c[choose(weights, r.IntN(total))]
		s := e.Draw(r, steps)
		s.Do, s.Wait = e.Name, Duration(wait)
		steps = append(steps, s)
	}
	return steps
}

func (o DrawOptions) weight(e Entry) int {
	if e.Fault && !o.Faults {
		return 0
	}
	if weight, ok := o.Weights[e.Name]; ok {
		return max(weight, 0)
	}
	return e.weight(o.SSA, o.Graph)
}

func (e Entry) weight(ssa, graph bool) int {
	weight := e.Weight
	if ssa {
		weight += e.WeightSSA
	}
	if graph {
		weight += e.WeightGraph
	}
	return weight
}

// choose returns the index of the weight in which the n-th unit lies.
func choose(weights []int, n int) int {
	for i, weight := range weights {
		if n < weight {
			return i
		}
		n -= weight
	}
	return len(weights) - 1
}

// waits are the kinds of pause between steps: at once and within milliseconds, so that steps overlap; about the length of
// the settle and refractory times; and long enough for all to settle. The weights are those of Mixed, Quick and Calm.
var waits = []struct {
	weights     [3]int
	least, most time.Duration
	unit        time.Duration
}{
	{[3]int{20, 30, 4}, 0, 0, time.Millisecond},
	{[3]int{22, 34, 4}, time.Millisecond, 60 * time.Millisecond, time.Millisecond},
	{[3]int{18, 22, 4}, 100 * time.Millisecond, 900 * time.Millisecond, 10 * time.Millisecond},
	{[3]int{18, 9, 8}, 900 * time.Millisecond, 2500 * time.Millisecond, 50 * time.Millisecond},
	{[3]int{13, 3, 30}, 3 * time.Second, 8 * time.Second, 100 * time.Millisecond},
	{[3]int{7, 2, 34}, 10 * time.Second, 30 * time.Second, time.Second},
	{[3]int{1, 0, 1}, time.Minute, 6 * time.Minute, 10 * time.Second},
}

func (p Pace) draw(r *rand.Rand) time.Duration {
	weights := make([]int, len(waits))
	total := 0
	for i, w := range waits {
		weights[i] = w.weights[p]
		total += weights[i]
	}
	w := waits[choose(weights, r.IntN(total))]
	return w.least + w.unit*time.Duration(r.Int64N(int64((w.most-w.least)/w.unit)+1))
}
