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
	// entries are the present ones as a Record keeps them, under each key of the ring, oldest first: after a rotation, the Record of a
	// workload is still under an older key.
	entries []string
	list    []digest.Step
}

func newest(entries []string) string {
	if len(entries) == 0 {
		return ""
	}
	return entries[len(entries)-1]
}

// step adds a change of a custom resource. Which ones workloads track is not known: a replica that is asked for the first time
// must know what has led to the present state.
func (a *graphState) step(change referent.Change) {
	state, hold := a.graph.State(change.Key)
	if _, config := change.Key.Ref(); config || hold != nil {
		return
	}
	before, known := a.tracked[change.Key]
	now := a.entriesOf(state)
	switch {
	case !known:
		a.tracked[change.Key] = steps{entries: now}
	case newest(now) != newest(before.entries):
		one := digest.Step{From: newest(before.entries), Older: before.entries[:max(0, len(before.entries)-1)]}
		for _, cause := range change.Causes {
			one.Causes = append(one.Causes, cause.Word(change.Key.Namespace))
		}
		list := before.list[max(0, len(before.list)+1-maxSteps):]
		a.tracked[change.Key] = steps{entries: now, list: append(slices.Clone(list), one)}
	}
}

// entriesOf returns the Entries under the keys of the ring, oldest first, as a Record keeps them.
func (a *graphState) entriesOf(state digest.State) []string {
	var entries []string
	for _, key := range a.ring().Keys() {
		if entry, ok := state.Entry(key.ID); ok {
			entries = append(entries, entry.Short())
		}
	}
	return entries
}
