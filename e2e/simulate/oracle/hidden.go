package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Hidden says which config objects an installation does not look at, whatever asks for them.
type Hidden struct {
	// Kinds are the resources that nothing looks at, Others those that the second dialect does not look at.
	Kinds, Others []string
	// Unread means that the second dialect is not read at all: no pause begins.
	Unread bool
	// Labels reports whether the second dialect looks at config objects with some labels; nil means that it looks at all.
	Labels func(map[string]string) bool
}

// fromAll reports whether nothing looks at a resource.
func (h Hidden) fromAll(plural string) bool { return slices.Contains(h.Kinds, plural) }

// fromOther reports whether the second dialect does not look at a resource.
func (h Hidden) fromOther(plural string) bool {
	return h.fromAll(plural) || slices.Contains(h.Others, plural)
}

// traitsOf reads what a config object says about its use: only "true" counts.
func (l *rules) traitsOf(object world.Object) traits {
	annotations, selects := world.Annotations(object), l.options.Hidden.Labels
	ignored := world.Text(annotations, otherDomain+"ignore") == "true"
	return traits{
		ignored: ignored || selects != nil && !selects(texts(world.Labels(object))),
		marked:  world.Text(annotations, otherDomain+"match") == "true",
	}
}

// hide records what is hidden from now on, and what workloads track then. Since the version of from on, some replicas may have hidden it
// already: what they found below a custom resource may be what the pods run with.
func (l *ledger) hide(hidden Hidden, from int64, at versionTime) {
	l.options.Hidden = hidden
	c := world.Commit{At: at.at, Version: at.version}
	l.retrack(c)
	for _, key := range l.graph.keys() {
		before := l.contents.histories[key].now()
		l.revalue(key, c)
		if l.contents.histories[key].now() == before {
			continue
		}
		for _, w := range l.all {
			if !w.gone && w.lists(key) {
				w.adopt(c.Version, from, c.At, ref{key.plural, key.name}).precise = true
				l.readDue(w, c.At)
			}
		}
	}
}

// retrack records what workloads track from a moment on.
func (l *ledger) retrack(c world.Commit) {
	for _, w := range l.all {
		if !w.gone {
			l.track(w, w.object, c, false)
		}
	}
}

// remembers reports whether the program must still know what the pods run with of an object that is tracked again. It must if it has
// recorded that under its name, no other template was made since, the workload has asked for reloads all the time, and nothing else is
// taken for it. Recorded absence may be forgotten, and what has no space.
func (l *ledger) remembers(w *workload, r ref, c world.Commit) bool {
	was, before := w.dropped[r]
	s := w.last()
	switch {
	case !before || was.recorded == 0 || isReferent(r.plural), s == nil || !s.eligible || s.version >= was.version:
		return false
	case w.unasked >= was.version, w.relisted == c.Version, w.cramped >= s.version, c.New == nil && c.Old != nil:
		return false
	case slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.covers(r) && a.version > was.recorded }):
		return false
	}
	return !l.beliefs(w, s, r)[absent]
}

// mayTrack reports whether a workload tracks an object, or did so before and may again, by a replica that was started with other flags.
func (l *ledger) mayTrack(w *workload, r ref) bool {
	_, dropped := w.dropped[r]
	return w.lists(id{r.plural, w.id.namespace, r.name}) || dropped && !l.scope.flags.Clear
}

// makeSure finds out whether the program surely has recorded what the pods of the present template run with.
func (l *ledger) makeSure(w *workload, now time.Time) {
	if !w.isSure() && l.mustHaveRecorded(w, now) {
		w.sure = l.version
	}
}

// isSure reports whether the program surely has recorded all that the pods of the present template run with.
func (w *workload) isSure() bool {
	s := w.last()
	return s != nil && w.sure >= max(s.version, w.retracked)
}

// recordedAt returns a version before a change at which the program surely had recorded an object, under its name; 0 if there is none.
func (l *ledger) recordedAt(w *workload, r ref, c world.Commit) int64 {
	record := l.recordOf(w.object)
	if idOf(c.Key) == w.id {
		record = l.recordOf(c.Old) // the write that hides it must not lose it
	}
	if named := strings.Contains(record, r.String()+"=") || strings.Contains(record, r.String()+"~"); !named || !w.isSure() {
		return 0
	}
	return w.sure
}

// asksForReloads reports whether the annotations of a workload surely ask for reloads, of hidden objects, too.
func (l *configLog) asksForReloads(w *workload, object world.Object) bool {
	own := world.Annotations(object)
	if len(listed(own, l.options.Prefix)) > 0 {
		return true
	}
	for _, plural := range []string{configMapList, secretList} {
		from, keys := l.otherSource(w, plural, object), otherKeysOf(plural)
		if isBool(from, otherAuto, false) {
			continue
		}
		asks := world.Text(from, keys.reload) != "" || world.Text(from, otherSearch) == "true" || isBool(from, otherAuto, true) ||
			isBool(from, keys.auto, true)
		if asks || l.isAuto(from, keys) && w.mentions(plural) {
			return true
		}
	}
	return false
}

// keptHidden reports whether a user keeps the managed annotations of a workload that asks for nothing but what flags hide: what the program
// has recorded must stay, too.
func (l *ledger) keptHidden(w *workload, c world.Commit) bool {
	asks := len(w.refs) == 0 && w.inScope && !w.excluded && l.asksForReloads(w, c.Old) && l.asksForReloads(w, c.New)
	return asks && c.Sent != nil && l.allManagedAnnotations(c.Sent) == l.allManagedAnnotations(c.Old)
}

// mentions reports whether the pod spec references an object of a resource.
func (w *workload) mentions(plural string) bool {
	for r := range w.needs {
		if r.plural == plural {
			return true
		}
	}
	return false
}
