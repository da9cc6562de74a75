package chain

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// maxSteps is how many changes of a custom resource are kept, so that a reload can name what has led to it.
const maxSteps = 8

// steps are the latest changes of a custom resource. The list is never changed in place.
type steps struct {
	entry string
	list  []digest.Step
}

// step adds a change of a custom resource. Which ones workloads track is not known: a replica that is asked for the first time
// must know what has led to the present state.
func (a *answers) step(change referent.Change) {
	state, hold := a.graph.State(change.Key)
	if _, config := change.Key.Ref(); config || hold != nil {
		return
	}
	before, known := a.tracked[change.Key]
	now := a.entryOf(state)
	switch {
	case !known:
		a.tracked[change.Key] = steps{entry: now}
	case now != before.entry:
		one := digest.Step{From: before.entry}
		for _, cause := range change.Causes {
			one.Causes = append(one.Causes, cause.String())
		}
		list := before.list[max(0, len(before.list)+1-maxSteps):]
		a.tracked[change.Key] = steps{entry: now, list: append(slices.Clone(list), one)}
	}
}

// entryOf returns the Entry under the newest key, as a Record keeps it.
func (a *answers) entryOf(state digest.State) string {
	newest, _ := a.ring().Newest()
	entry, _ := state.Entry(newest.ID)
	return entry.Short()
}
