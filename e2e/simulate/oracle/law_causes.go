package oracle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// String returns the change as an Event names it, e.g. "configmap/app modified".
func (c reloadCause) String() string {
	if c.Ref == "*" {
		return "a tracked object " + c.Type
	}
	return c.Ref + " " + c.Type
}

// judgeChanges looks whether what is named as a cause has changed since what was known of the template before.
func (l *explainedLaw) judgeChanges(w *workload, before, s *stamp, last lastReload) {
	if w.uncertain(before) || before.foreign || !before.eligible || w.relisted > before.version {
		return
	}
	since := before.arrived
	for _, p := range before.periods {
		since = min(since, p.from)
	}
	for _, change := range last.Changes {
		r, ok := change.of()
		if _, listed := w.tracked[r]; !ok || !listed || isReferent(r.plural) && !l.scope.flags.Clear {
			continue
		}
		l.count("causes judged")
		if !l.changedSince(w, before.carried[r], r, since, s.version) {
			l.violate(s.at, broken{"explained", w.id.String(), "cause"}, "the reload of %s names %s as %s, but it has not changed since %s",
				l.when(s.at), change.Ref, change.Type, l.when(before.at))
		}
	}
}

// changedSince reports whether an object has changed until a version, since another one or since what is carried of it.
func (l *explainedLaw) changedSince(w *workload, carried []*period, r ref, since, until int64) bool {
	for _, p := range carried {
		since = min(since, p.from)
	}
	h := l.contents.of(w.id.namespace, r)
	return len(h.within(since, until)) > 0 || isReferent(r.plural) && h.touchedWithin(since, until)
}

// judgeNamed looks whether a reload names each object that has surely changed, and says how it has.
func (l *explainedLaw) judgeNamed(w *workload, before, s *stamp, last lastReload) {
	if w.changesUnclear(before) || w.story.unrecorded >= before.version {
		return
	}
	named, complete := last.named()
	for _, r := range w.refs {
		how, certain := l.changeOf(w, before, s, r)
		kind, isNamed := named[r]
		switch {
		case !certain:
		case isNamed && kind != how:
			l.violate(s.at, broken{"explained", w.id.String(), "cause-type"}, "the reload of %s names %s as %s, but it was %s since %s",
				l.when(s.at), r, kind, how, l.when(before.at))
		case !isNamed && complete && how == modified:
			l.violate(s.at, broken{"explained", w.id.String(), "cause-missing"}, "the reload of %s does not name %s, which was %s since %s",
				l.when(s.at), r, how, l.when(before.at))
		default:
			l.count("named causes judged")
		}
	}
}

// named returns the types of the changes that a reload names. It is not complete where it only counts some, or does not know which.
func (r lastReload) named() (types map[ref]string, complete bool) {
	types, complete = map[ref]string{}, r.More == 0
	for _, change := range r.Changes {
		complete = complete && change.Ref != "*"
		if of, ok := change.of(); ok {
			types[of] = change.Type
		}
	}
	return types, complete
}

// modified is the type of a change from one content to another.
const modified = "modified"

// changeOf returns how an object surely has changed between a stamp and the next; false where it is not certain that it has, or how. Of
// an object that was absent during a stamp, an earlier content may be recorded. What lists or config objects select only since the
// stamp, or did not for a while, may not have been compared.
func (l *explainedLaw) changeOf(w *workload, before, s *stamp, r ref) (how string, certain bool) {
	lapsed, dropped := w.dropped[r]
	if l.scope.mayHide(r.plural) {
		return "", false
	}
	if isReferent(r.plural) || w.tracked[r] > before.version || dropped && lapsed.version > before.version {
		return "", false
	}
	known, read := l.findContents(w, before, s, r)
	was, knows := known.only()
	now, alone := read.only()
	switch {
	case !knows || !alone || was == now:
		return "", false
	case was == absent:
		_, existed := l.contents.of(w.id.namespace, r).beforeAbsence(before.version)
		return "created", !existed
	case now == absent:
		return "deleted", true
	}
	return modified, true
}

// judgeNotes looks whether each Event of a workload names what has caused a reload: the first change of one. The annotation keeps the
// changes of the last reload only: a process that finds an earlier one there cannot name its changes.
func (l *explainedLaw) judgeNotes(w *workload, now time.Time) {
	firsts, certain := w.story.firstChanges()
	if !certain || w.lastHandEdit > 0 || w.uid == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.events.reloaded)) {
		event := l.events.reloaded[name]
		if event.uid != w.uid || (l.handedOver || w.story.overtaken) && !namesChange(event.note) {
			continue
		}
		l.count("notes of Events judged")
		if !slices.ContainsFunc(firsts, func(first string) bool { return strings.Contains(event.note, first) }) {
			l.violate(now, broken{"explained", w.id.String(), "note"},
				"the Event %s says %q, but the reloads were caused by %s", name, event.note, strings.Join(firsts, "; "))
		}
	}
}

// firstChanges returns the first change of each reload, as Events name them. It is not certain where one names no change, or has no
// annotation.
func (s story) firstChanges() (firsts []string, certain bool) {
	for _, value := range slices.Sorted(maps.Keys(s.annotated)) {
		var last lastReload
		if json.Unmarshal([]byte(value), &last) != nil || len(last.Changes) == 0 {
			return nil, false
		}
		firsts = append(firsts, last.Changes[0].String())
	}
	return firsts, len(firsts) > 0 && s.unannotated == 0
}

// namesChange reports whether a text says of an object how it has changed.
func namesChange(note string) bool {
	return slices.ContainsFunc([]string{"created", modified, "deleted"}, func(how string) bool {
		return strings.Contains(note, "/") && strings.Contains(note, " "+how)
	})
}
