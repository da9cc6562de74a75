package oracle

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Sides are the installations that select a workload, of two with the same digest key. To the laws both together are the program: what one
// has recorded, the other one goes by.
type Sides struct{ First, Second bool }

// selection is which of two installations look after a workload.
type selection struct {
	sides Sides
	// shared means that both have selected it at the same time, moved that it has changed from one to the other.
	shared, moved bool
	// inPart means that they have tracked different objects of it.
	inPart bool
}

// of reports whether the installation selects the workload, the second one or the first.
func (s Sides) of(second bool) bool {
	if second {
		return s.Second
	}
	return s.First
}

// readSides reads which installations look after a workload, where there are two.
func (l *ledger) readSides(w *workload) {
	if l.options.Sides == nil {
		return
	}
	var labels map[string]string
	if namespace := l.namespaces[w.id.namespace]; namespace != nil {
		labels = namespace.labels
	}
	was := w.sides
	w.sides = l.options.Sides(w.id.namespace, labels, texts(world.Labels(w.object)))
	w.shared = w.shared || w.sides == Sides{true, true}
	w.moved = w.moved || len(w.stamps) > 0 && was != w.sides
	w.inPart = w.inPart || l.tracksInPart(w)
}

// handledElsewhere reports whether only the other installation than that of a replica selects a workload, where there are two.
func (l *rules) handledElsewhere(w *workload, client string) bool {
	return l.options.Sides != nil && !w.sides.of(l.options.Second(client))
}

// countedByBoth returns how many reloads both of two installations may have counted: the Event that one of them writes says that to the other
// one, and a replica that is not allowed to write Events counts without.
func (l *countedLaw) countedByBoth() (n int) {
	if !slices.ContainsFunc(l.faults.spans, func(s *span) bool { return s.kind == writesDenied && s.scope == eventsResource || s.kind == "denied" }) {
		return 0
	}
	for _, w := range l.all {
		if w.shared || w.moved {
			n += w.story.reportable()
		}
	}
	return n
}

// tracksInPart reports whether both of two installations track some objects of a workload, but not the same ones, or only one of them knows of
// its pauses. It is a documented limit that a change may restart nothing then, and that each restores the record of its own.
func (l *rules) tracksInPart(w *workload) bool {
	annotations := world.Annotations(w.object)
	reads := func(name string) bool { return world.Text(annotations, name) != "" }
	return l.options.HalfRead && len(w.listed) > 0 && (w.dynamic || slices.ContainsFunc(otherKeysOfAll(), reads))
}

// byBoth returns how many writes there may be where one installation may send n: each may ask for what the other one asks for at this moment.
func (w *workload) byBoth(n int) int {
	if w.shared {
		return 2 * n
	}
	return n
}

// disagreeing reports whether there is a workload that two installations track in part: they do not come to rest.
func (l *idleLaw) disagreeing() bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return !w.gone && l.tracksInPart(w) })
}

// adoptFromOther notes a documented limit: the installation that tracks nothing of a workload empties the record at a release, and the other one
// takes what it finds for what the pods run with.
func (l *ledger) adoptFromOther(w *workload, s *stamp) {
	if l.options.HalfRead && w.dynamic && !s.program {
		w.adopt(s.version, s.arrived, s.at, ref{})
	}
}

// sidesLaw is the law "scope" for two installations: neither writes a workload that only the other one selects.
type sidesLaw struct {
	*ledger
	passive
}

func (l *sidesLaw) request(call *world.Call) {
	w := l.workloads[idOf(call.Key)]
	if w == nil || !call.Write() || !l.isProgram(call) {
		return
	}
	calm, known := l.calmSince(w)
	if !known || w.unclear || call.Arrived.Sub(later(calm, w.changed)) < notice {
		return
	}
	if l.options.Sides != nil {
		l.count("sides judged")
	}
	if w.inScope && l.handledElsewhere(w, call.Client) {
		l.violate(call.Arrived, broken{"scope", w.id.String(), "sides"},
			"%s sent a %s at %s, but only the other installation selects the workload", call.Client, call.Verb, l.when(call.Arrived))
	}
}
