package oracle

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// judgeKept is the law "kept": no pod is replaced that has the template users see and the contents listed.
func (o *Oracle) judgeKept(p *pod, c world.Commit) {
	w := p.workload
	if c.Call != nil || w.gone || deleting(w.object) || !p.running || w.id.plural == "cronjobs" {
		return
	}
	if space := o.namespaces[w.id.namespace]; space != nil && space.ending {
		return
	}
	o.count("pods replaced")
	if excuse := o.excuseFor(p, c); excuse != "" {
		o.count("pods replaced with cause: " + excuse)
		return
	}
	s := w.stampAt(o.decided(c))
	o.count("pods replaced without cause")
	o.violate(c.At, broken{"kept", w.id.String(), by(s)},
		"pod %s was replaced at %s because of the template of %s (version %d), but it had the same template and the same contents since %s",
		p.id.name, o.when(c.At), o.when(s.at), s.version, o.when(p.startedAt))
}

// judgeHeld is the law "kept" for objects that pods require: where one was deleted, the program does not restart pods that
// could not start then.
func (o *Oracle) judgeHeld(w *workload, before, s *stamp) { //nolint:gocyclo // a list of cases, each with its own reason
	if !s.program || s.marks == before.marks || o.options.ReloadMissingRequired || w.uncertain(before) || before.foreign ||
		w.fumbled > before.version {
		return
	}
	window := &period{from: s.arrived, to: s.version}
	if s.direct {
		window.from = min(window.from, o.versionAt(s.arrivedAt.Add(-readLongBefore)))
	}
	for _, r := range w.refs {
		if w.needs[r] != required || w.tracked[r] > before.version || o.beliefs(w, before, r)[absent] {
			continue
		}
		o.count("required objects judged")
		set := believed{}
		set.addPeriod(o.contents.of(w.id.namespace, r), window, o.version)
		if content, alone := set.only(); alone && content == absent {
			o.violate(s.at, broken{"kept", w.id.String(), "missing-required"},
				"the program restarted it at %s although %s is missing, which its pods require: they cannot start", o.when(s.at), r)
		}
	}
}

// by says who made a stamp, and by which kind of request.
func by(s *stamp) string {
	switch {
	case s.program:
		return "program"
	case s.call == nil:
		return "controller"
	}
	how := s.call.Verb
	for _, kind := range []string{"apply", "strategic", "merge", "json-patch"} {
		if s.call.Verb == "patch" && strings.Contains(s.call.ContentType, kind) {
			return how + "-" + kind
		}
	}
	return how
}

// excuseFor returns why a pod was or may have been replaced rightly; empty if there is no reason. The controller decides by the
// template of that moment: for the pods of a ReplicaSet when it shrinks the set, else when it deletes the pod.
func (o *Oracle) excuseFor(p *pod, c world.Commit) string {
	if p.stamp == nil {
		return "template not known"
	}
	s := p.workload.stampAt(o.decided(c))
	switch {
	case s == nil:
		return "template not known"
	case s.visible != p.stamp.visible:
		return "template changed"
	case s.marks == p.stamp.marks:
		return "not by the template"
	}
	return o.causeOf(p, s)
}

// decided returns the version at which it was decided that a pod is deleted.
func (o *Oracle) decided(c world.Commit) int64 {
	if _, owner := controllerOf(c.Old); o.shrunk[owner] > 0 {
		return o.shrunk[owner]
	}
	return c.Version
}

// stampAt returns the template of a version; nil if there was none.
func (w *workload) stampAt(version int64) *stamp {
	for _, s := range slices.Backward(w.stamps) {
		if s.version <= version {
			return s
		}
	}
	return nil
}

// causeOf returns what may have led from the stamp of a pod to a later one; empty if nothing has.
func (o *Oracle) causeOf(p *pod, s *stamp) string { //nolint:gocyclo // a list of cases, each with its own reason
	w := p.workload
	switch {
	case s.version <= p.stamp.version:
		return "earlier template"
	case !s.program && !s.seen:
		return "webhook away"
	case w.relisted > p.stamp.version:
		return "lists edited"
	case p.stamp.foreign || s.foreign || s.handmade:
		return "marks edited"
	case !s.eligible && s.guarded && s.seen && (p.stamp.seen || p.stamp.program):
		return "" // out of its care the program restarts nothing, whatever the contents
	case w.ineligibleAt > p.stamp.version && !o.keptOutside(p, s):
		return "not looked after"
	case w.uncertain(p.stamp):
		return "not known yet"
	}
	for _, a := range w.adoptions {
		if a.lost && a.version > p.stamp.version {
			return "key lost"
		}
	}
	for _, r := range w.refs {
		if excuse := o.contentCause(p, s, r); excuse != "" {
			return excuse
		}
	}
	return ""
}

// keptOutside reports whether a time in which the workload was not looked after makes no difference: the webhook saw the stamp,
// and no other template was made since. A label that comes and goes restarts nothing then.
func (o *Oracle) keptOutside(p *pod, s *stamp) bool {
	for _, other := range p.workload.stamps {
		if other.version > p.stamp.version && other.version < s.version && other.visible != p.stamp.visible {
			return false
		}
	}
	return (s.eligible || s.guarded && s.visible == p.stamp.visible) && (p.stamp.seen || p.stamp.program)
}

// contentCause returns which change of an object may have led from the stamp of a pod to a later one.
func (o *Oracle) contentCause(p *pod, s *stamp, r ref) string { //nolint:gocyclo // a list of cases, each with its own reason
	w := p.workload
	h := o.contents.of(w.id.namespace, r)
	set := o.beliefs(w, p.stamp, r)
	if w.needs[r] == required && w.fumbled <= p.stamp.version && len(set) > 1 {
		delete(set, absent) // the pods waited for it
	}
	window := &period{from: s.arrived, to: s.version}
	if s.program && (s.direct || !o.healthy(w, s.arrivedAt)) {
		window.from = min(window.from, o.versionAt(s.arrivedAt.Add(-readLongBefore)))
	}
	set.addPeriod(h, window, o.version)
	content, alone := set.only()
	changed := len(h.within(p.stamp.version, s.version)) > 0
	switch {
	case !alone || content != h.at(p.started):
		return "content changed"
	case changed && w.keyChanged > p.stamp.version:
		return "content and key changed"
	case changed && p.stamp.marks == "":
		return "content changed and first stamp" // a documented limit
	case changed && w.needs[r] != optional && hadAbsence(h, p.stamp.version, s.version) && w.hasBetween(p.stamp, s):
		return "release while a required object was missing" // a documented limit
	case o.options.Revision && h.touchedWithin(p.stamp.arrived, s.version):
		return "version changed"
	}
	return ""
}

// hasBetween reports whether another stamp came between two.
func (w *workload) hasBetween(first, last *stamp) bool {
	for _, s := range w.stamps {
		if s.version > first.version && s.version < last.version {
			return true
		}
	}
	return false
}

func hadAbsence(h *history, from, to int64) bool {
	for _, e := range h.within(from, to) {
		if e.content == absent {
			return true
		}
	}
	return false
}
