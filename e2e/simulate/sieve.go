package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
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

// What the patterns come to, as keys of Result.Judged: a pattern that does not come about shows nothing.
const (
	killedAtWrite = "replicas killed at a write"
	readsBehind   = "reads of a state behind"
	statesFolded  = "states folded"
)

// Lease time and the start of a leader take less than lagFor: the next leader acts while its view is still behind. It is killed
// lagAfter its step, when it has acted on it.
const lagAfter, lagFor = 5 * time.Second, 45 * time.Second

// TimeTravels returns the history once for each step, replica and lag: some time after the step the replica starts again, and reads
// from an API server that is so many versions behind. That server does not stream lists: one that does waits until it is up to date.
func TimeTravels(h history.History) []history.History {
	var all []history.History
	for i := range h.Steps {
		for n := range h.Setup.Replicas {
			for _, by := range []int{8, 40} {
				travelled := inserted(h, i+1, history.Step{
					Wait: history.Duration(lagAfter), Do: "lag", On: replicaName(n),
					With: map[string]string{"by": strconv.Itoa(by), "for": lagFor.String()},
				})
				travelled.Setup.NoStreamingLists = true
				all = append(all, travelled)
			}
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
		for _, resource := range touched(h) {
			fold := history.Step{Do: "fold-watches", On: resource, Wait: h.Steps[i].Wait, With: map[string]string{"for": lasts.String()}}
			changed := inserted(h, i, fold)
			changed.Steps[i+1].Wait = 0
			all = append(all, changed)
		}
	}
	return all
}

// touched returns the resources that a history is about, and those of the workloads that its changes restart.
func touched(h history.History) []string {
	resources := map[string]bool{"configmaps": true, "secrets": true, "deployments": true}
	for _, step := range h.Steps {
		if resource, _, object := strings.Cut(step.On, "/"); object {
			resources[resource] = true
		}
	}
	return slices.Sorted(maps.Keys(resources))
}

// inserted returns a history with one more step.
func inserted(h history.History, at int, step history.Step) history.History {
	h.Steps = slices.Insert(slices.Clone(h.Steps), at, step)
	return h
}
