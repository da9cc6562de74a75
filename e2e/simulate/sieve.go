package simulate

import (
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// The three patterns of Sieve (Sun et al., OSDI '22), by which most controllers break: a crash between two writes, a view that
// goes back in time, and a state that is never observed. Each is applied to a history at every place.

// Crashes returns the history once for every write of the program, up to a number: the replica is killed when that write has
// been stored, and does not get the answer.
func Crashes(h history.History, writes int) []history.History {
	var all []history.History
	for n := range writes {
		crashed := h
		crashed.Setup.CrashAtWrite = n + 1
		all = append(all, crashed)
	}
	return all
}

// TimeTravels returns the history once for each step and lag: after the step the replica starts again, and reads at first
// from an API server that is so many versions behind.
func TimeTravels(h history.History) []history.History {
	var all []history.History
	for i := range h.Steps {
		for _, by := range []int{2, 12} {
			all = append(all, inserted(h, i+1, history.Step{
				Do: "lag", On: "replica-0", With: map[string]string{"by": strconv.Itoa(by), "for": "3s"},
			}))
		}
	}
	return all
}

// Unobserved returns the history once for each step and kind of watch: watches deliver nothing from before the step until the
// next one is over, and are then opened anew. What was between the two states is never seen.
func Unobserved(h history.History) []history.History {
	var all []history.History
	for i := range h.Steps {
		lasts := 500 * time.Millisecond
		if i+1 < len(h.Steps) {
			lasts += time.Duration(h.Steps[i+1].Wait)
		}
		for _, resource := range []string{"configmaps", "secrets", "deployments"} {
			fold := history.Step{Do: "fold-watches", On: resource, Wait: h.Steps[i].Wait, With: map[string]string{"for": lasts.String()}}
			changed := inserted(h, i, fold)
			changed.Steps[i+1].Wait = 0
			all = append(all, changed)
		}
	}
	return all
}

// inserted returns a history with one more step.
func inserted(h history.History, at int, step history.Step) history.History {
	h.Steps = slices.Insert(slices.Clone(h.Steps), at, step)
	return h
}
