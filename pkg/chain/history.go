package chain

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// history is what the graph does not have of its nodes: since when they are held, and what has led to the state of the others. It has no
// lock: graphState has.
type history struct {
	// held is since when nodes are held. Questions add to it. It is nil until there is a graph.
	held map[referent.Key]time.Time
	// refused are what the API server has refused.
	refused refusals
	// tracked has the latest changes of custom resources.
	tracked map[referent.Key]steps
	// contents are the latest contents of objects, oldest first: one that came back as it was is no cause of a change.
	contents map[referent.Key][]seen
	// spare is how many objects that are in no graph keep their entries, beside as many as there are in it.
	spare int
	// additions counts what was added.
	additions int
	// prunedAt is when the program last dropped the entries of objects that are in no graph.
	prunedAt time.Time
}

// clear forgets all, with the end of a configuration.
func (h *history) clear() { h.held, h.tracked, h.contents, h.refused = nil, nil, nil, refusals{} }

// begin begins with a graph. Under other keys, the same objects are held.
func (h *history) begin() {
	h.tracked, h.contents = map[referent.Key]steps{}, map[referent.Key][]seen{}
	if h.held == nil {
		h.held = map[referent.Key]time.Time{}
	}
}

// add keeps since when nodes are held, and what has led to the state of the others. A question adds what it has found some time
// before: a hold that has ended since does not count.
func (h *history) add(graph *referent.Graph, changes []referent.Change, keys []digest.Key, now time.Time) {
	if h.held == nil {
		return // the configuration has changed meanwhile
	}
	h.prune(graph, now)
	h.additions++
	for _, change := range changes {
		h.see(change.Key, graph)
	}
	for _, change := range changes {
		if _, was := h.held[change.Key]; !change.Held {
			delete(h.held, change.Key)
			h.step(change, graph, keys)
		} else if !was && graph.Hold(change.Key) != nil {
			h.held[change.Key] = now
		}
	}
}

// heldBy is the state of a node that a graph holds.
func (h *history) heldBy(hold *referent.Hold, key referent.Key, since time.Time) digest.State {
	if hold.Reason == referent.Unsynced {
		return unread(describe(hold, key), since)
	}
	state := held(describe(hold, key), since)
	state.Hold.Forbidden, state.Hold.Refused = hold.Reason == referent.Forbidden, h.refused.at(hold)
	return state
}

// describe says why a node is held, and which node below it is the cause.
func describe(hold *referent.Hold, key referent.Key) string {
	text := string(hold.Reason)
	if hold.Node != key {
		text = hold.Node.In(key.Namespace) + " is " + text
	}
	if hold.Detail != "" {
		text += ": " + hold.Detail
	}
	return text
}

const (
	// defaultSpare is the spare of a history.
	defaultSpare = 1_000
	// keep is how long they keep them at least: an object that comes and goes meanwhile must not prevent the report of a hold. It is
	// also the least time between two prunings.
	keep = time.Minute
)

// prune drops the entries of objects that are in no graph, when most entries are of such objects. They were deleted, or never existed.
func (h *history) prune(graph *referent.Graph, now time.Time) {
	if now.Sub(h.prunedAt) < keep {
		return
	}
	most := 2*graph.Len() + h.spare
	if max(len(h.held), len(h.refused), len(h.tracked), len(h.contents)) < most {
		return
	}
	h.prunedAt = now
	if len(h.held) >= most {
		maps.DeleteFunc(h.held, func(key referent.Key, since time.Time) bool { return !graph.Has(key) && now.Sub(since) >= keep })
	}
	if len(h.refused) >= most {
		maps.DeleteFunc(h.refused, func(key referent.Key, _ time.Time) bool { return key.Name != "" && !graph.Has(key) })
	}
	if len(h.tracked) >= most {
		maps.DeleteFunc(h.tracked, func(key referent.Key, _ steps) bool { return !graph.Has(key) })
	}
	if len(h.contents) >= most {
		maps.DeleteFunc(h.contents, func(key referent.Key, _ []seen) bool { return !graph.Has(key) })
	}
}

// mostBelow is below how many objects causes are searched for.
const mostBelow = 1_000

// causes returns the objects because of which a custom resource is another one than at an earlier addition: the first referent.MaxCauses by
// key.
func (h *history) causes(change referent.Change, graph *referent.Graph, addition int) []referent.Key {
	causes := h.changed(change.Causes, addition)
	if h.lacksCauses(change, len(causes), addition) {
		if below, few := graph.FewBelow(mostBelow, change.Key); few {
			causes = h.changed(slices.Concat(change.Causes, below), addition)
		}
	}
	return causes[:min(len(causes), referent.MaxCauses)]
}

// lacksCauses reports whether there may be other causes than those of a change, of which some have changed. The graph does not know what has
// changed below an object that was away, and names the first causes only.
func (h *history) lacksCauses(change referent.Change, changed, addition int) bool {
	wasAway := func(key referent.Key) bool { return h.wasAway(key, addition) }
	cut := len(change.Causes) == referent.MaxCauses && changed < referent.MaxCauses
	return cut || wasAway(change.Key) || slices.ContainsFunc(change.Causes, wasAway)
}

// changed returns those of some objects that are not as at an earlier addition, sorted, each once.
func (h *history) changed(keys []referent.Key, addition int) []referent.Key {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key referent.Key) bool { return h.isAsBefore(key, addition) })
	slices.SortFunc(keys, referent.Key.Compare)
	return slices.Compact(keys)
}

// wasAway reports whether an object was absent after an addition.
func (h *history) wasAway(key referent.Key, addition int) bool {
	return slices.ContainsFunc(h.contents[key], func(s seen) bool { return s.since > addition && s.content.Absent() })
}

// maxSteps is how many changes of a custom resource, and how many contents of an object, are kept, so that a reload can name what has led
// to it.
const maxSteps = 8

// seen is the content of an object since an addition.
type seen struct {
	since   int
	content referent.Content
}

// see keeps the content of an object. That it is absent counts only after it was there: anyone can ask about any name.
func (h *history) see(key referent.Key, graph *referent.Graph) {
	content, known := graph.Content(key)
	all := h.contents[key]
	switch {
	case !known || len(all) == 0 && content.Absent():
	case len(all) == 0 || all[len(all)-1].content != content:
		h.contents[key] = append(all[max(0, len(all)+1-maxSteps):], seen{h.additions, content})
	}
}

// isAsBefore reports whether an object has the content that it had at an earlier addition. Before it was first seen, it was absent.
func (h *history) isAsBefore(key referent.Key, addition int) bool {
	var before, now referent.Content
	all := h.contents[key]
	for _, s := range all {
		if now = s.content; s.since <= addition {
			before = s.content
		}
	}
	known := len(all) < maxSteps || all[0].since <= addition
	return known && before == now
}

// steps are the latest changes of a custom resource. The list is never changed in place.
type steps struct {
	// entries are the present ones as a Record keeps them, under each key of the ring, oldest first: after a rotation, the Record of a
	// workload is still under an older key.
	entries []string
	list    []digest.Step
	// addition is the one that has brought the present Entries.
	addition int
}

func newest(entries []string) string {
	if len(entries) == 0 {
		return ""
	}
	return entries[len(entries)-1]
}

// step adds a change of a custom resource. Which ones workloads track is not known: a replica that is asked for the first time
// must know what has led to the present state.
func (h *history) step(change referent.Change, graph *referent.Graph, keys []digest.Key) {
	state, hold := graph.State(change.Key)
	if _, config := change.Key.Ref(); config || hold != nil {
		return
	}
	before, known := h.tracked[change.Key]
	now := entriesOf(state, keys)
	switch {
	case !known:
		h.tracked[change.Key] = steps{entries: now, addition: h.additions}
	case newest(now) != newest(before.entries):
		one := digest.Step{From: newest(before.entries), Older: before.entries[:max(0, len(before.entries)-1)]}
		for _, cause := range h.causes(change, graph, before.addition) {
			one.Causes = append(one.Causes, cause.Word(change.Key.Namespace))
		}
		list := before.list[max(0, len(before.list)+1-maxSteps):]
		h.tracked[change.Key] = steps{entries: now, list: append(slices.Clone(list), one), addition: h.additions}
	}
}

// entriesOf returns the Entries under digest keys, oldest first, as a Record keeps them.
func entriesOf(state digest.State, keys []digest.Key) []string {
	var entries []string
	for _, key := range keys {
		if entry, ok := state.Entry(key.ID); ok {
			entries = append(entries, entry.Short())
		}
	}
	return entries
}
