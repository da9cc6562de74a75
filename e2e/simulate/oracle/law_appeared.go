package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// appearance is the creation of an object that a workload tracks from then on.
type appearance struct {
	versionTime

	of ref
}

// appearedLaw is the law "prompt" for objects that an expression or the annotation match selects: with --reload-on-create, their creation
// restarts the workload. Nothing but the order of two writes says that it did not exist, so that the program need not know after a fault.
type appearedLaw struct {
	*ledger
	passive
}

func (l *appearedLaw) owes(time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return !w.gone && len(w.appeared) > 0 })
}

// sameRequest reports whether a workload has the same spec and the same annotations of the second dialect.
func sameRequest(before, after world.Object) bool {
	other := func(name string) bool { return !hasOtherDialect(world.Object{name: nil}) }
	return equal(world.Section(before, "spec"), world.Section(after, "spec")) && sameWithout(world.Annotations(before), world.Annotations(after), other)
}

// recordAppearance records the creation of an object that the workload has never tracked, where it must restart the workload.
func (l *ledger) recordAppearance(w *workload, r ref, c world.Commit) {
	_, before := w.dropped[r]
	created := c.Old == nil && c.New != nil && idOf(c.Key) == id{r.plural, w.id.namespace, r.name}
	if created && !before && w.triggers[r].appears && w.needs[r] == optional && l.knows(w, c.At) {
		l.count("appearances")
		w.appeared = append(w.appeared, appearance{versionTime{c.At, c.Version}, r})
	}
}

// knows reports whether the program surely has recorded what the pods of a workload run with, and which write has made them.
func (l *ledger) knows(w *workload, at time.Time) bool {
	return l.mustHaveRecorded(w, at) && at.Sub(w.respecified) > notice
}

// mustHaveRecorded reports whether the program surely has recorded what the pods of a workload run with.
func (l *ledger) mustHaveRecorded(w *workload, at time.Time) bool {
	s := w.last()
	if s == nil || !w.eligible || len(w.open) > 0 || w.uncertain(s) || l.recordOf(w.object) == "" {
		return false
	}
	return at.Sub(w.eligibleSince) > chance && at.Sub(l.keysChanged) > readoption && l.watched(w, at.Add(-chance), at)
}

// watch is the law "prompt" for what has appeared.
func (l *appearedLaw) watch(w *workload, now time.Time) {
	w.appeared = slices.DeleteFunc(w.appeared, func(a appearance) bool { return l.judge(w, a, now) })
}

// judge reports whether nothing remains to be said of an appearance.
func (l *appearedLaw) judge(w *workload, a appearance, now time.Time) bool {
	switch {
	case w.last().version > a.version:
		l.count("appearances with another template")
		return true
	case !l.mustSee(w, a, now):
		l.count("appearances excused")
		return true
	case now.Sub(a.at) <= l.promptBound():
		return false
	}
	l.violate(now, broken{"prompt", w.id.String(), "appeared"},
		"%s was created at %s, but the pod template is the one of %s", a.of, l.when(a.at), l.when(w.last().at))
	return true
}

// mustSee reports whether the program had all that it needs to restart a workload for what has appeared.
func (l *appearedLaw) mustSee(w *workload, a appearance, now time.Time) bool {
	changed := len(l.contents.of(w.id.namespace, a.of).within(a.version, l.version)) > 0
	return w.eligible && w.triggers[a.of].appears && !changed && w.respecified.Before(a.at) && !l.keysChanged.After(a.at) &&
		!l.held(w) && !l.full(w) && l.bytesLeftOn(w.object) >= recordNeeds &&
		l.watched(w, a.at.Add(-chance), now) && l.rewatched[w.id.plural].Before(a.at.Add(-chance))
}
