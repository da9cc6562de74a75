package oracle

import (
	"slices"
	"strings"
	"time"
)

const (
	// heldTime is how long a custom resource is held before an Event must be there: 10 seconds until it is reported, a minute between two
	// reports about a workload, a minute between two attempts to write an Event.
	heldTime = 3 * time.Minute
	// freeTime is how long it must not be held before the program surely knows that, and reports it once more when it is held again.
	freeTime = time.Minute
)

// heldReport is an Event that says that custom resources are held.
type heldReport struct {
	kind, namespace, name, note string

	at time.Time
}

// heldLaw is the law "visible" for custom resources.
type heldLaw struct {
	*ledger
	passive
}

func (l *heldLaw) owes(now time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return l.owesReport(w, now) })
}

// settled is the law "visible" for custom resources: a workload that does not follow one because it is held has an Event that
// names it.
func (l *heldLaw) settled(w *workload, now time.Time) {
	for _, r := range l.unreportedHolds(w) {
		since, known := l.heldSince(w, r)
		if !known || now.Sub(since) < heldTime {
			continue
		}
		l.violate(now, broken{"visible", w.id.String(), "held"}, "%s is held since %s, but no Event ReferentHeld about the workload names it",
			referentText(r), l.when(since))
	}
}

// owesReport reports whether an Event about a custom resource that is held is still to come.
func (l *heldLaw) owesReport(w *workload, now time.Time) bool {
	return slices.ContainsFunc(l.unreportedHolds(w), func(r ref) bool {
		since, known := l.heldSince(w, r)
		return known && now.Sub(since) < heldTime
	})
}

// unreportedHolds returns the custom resources that a workload lists, and that exist and are held, without an Event about it.
func (l *heldLaw) unreportedHolds(w *workload) (held []ref) {
	if w.gone || !w.eligible {
		return nil
	}
	for _, r := range w.refs {
		key := id{r.plural, w.id.namespace, r.name}
		if n := l.graph.nodes[key]; !isReferent(r.plural) || l.graph.objects[key] == nil || n == nil || n.held == "" {
			continue
		}
		if l.count("holds judged"); !l.heldReported(w, r) {
			held = append(held, r)
		}
	}
	return held
}

// heldReported reports whether an Event names a custom resource since it is held. Times of freedom that the program may not have seen do
// not count.
func (l *heldLaw) heldReported(w *workload, r ref) bool {
	holds := l.graph.nodes[id{r.plural, w.id.namespace, r.name}].holds
	for len(holds) > 1 && !l.surelySeen(w, holds[len(holds)-2].at, holds[len(holds)-1].at) {
		holds = holds[:len(holds)-2]
	}
	since := lastHeld(holds)
	return slices.ContainsFunc(l.events.held, func(e heldReport) bool {
		about := e.namespace == w.id.namespace && e.name == w.id.name && pluralOf(map[string]any{"kind": e.kind}) == w.id.plural
		return about && strings.Contains(e.note, referentText(r)) && !e.at.Before(since)
	})
}

// lastHeld returns since when a custom resource is held that is held now; zero if it was never free.
func lastHeld(holds []hold) time.Time {
	if len(holds) == 0 {
		return time.Time{}
	}
	return holds[len(holds)-1].at
}

// surelySeen reports whether the program has surely seen what was so between two moments, and has looked at a workload.
func (l *heldLaw) surelySeen(w *workload, from, to time.Time) bool {
	if to.Sub(from) < freeTime || w.changed.After(from) || w.eligibleSince.After(from) {
		return false
	}
	return !slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		return s.from.Before(to) && (s.open || s.to.Add(longRecovery).After(from))
	})
}

// heldSince returns since when the program should report that a custom resource is held: nothing has disturbed it, and the workload has
// listed it.
func (l *heldLaw) heldSince(w *workload, r ref) (since time.Time, known bool) {
	holds := l.graph.nodes[id{r.plural, w.id.namespace, r.name}].holds
	calm, known := l.calmSince(w)
	allowed, written := l.eventsAllowedSince()
	since = later(later(later(calm, allowed), lastHeld(holds)), later(w.changed, w.eligibleSince))
	return later(since, l.leaderSince), known && written
}

// referentText is how Events name a custom resource.
func referentText(r ref) string { return r.plural + "." + graphGroup + "/" + r.name }
