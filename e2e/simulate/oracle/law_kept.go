package oracle

import (
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// lag is how long a controller may need to replace a pod because of a template that is not the present one any more.
const lag = 30 * time.Second

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
	if excuse := o.excuseFor(p, c.At); excuse != "" {
		o.count("pods replaced with cause: " + excuse)
		return
	}
	s := w.last()
	o.count("pods replaced without cause")
	o.violate(c.At, "kept", w.id.String(), by(s),
		"pod %s was replaced at %s because of the template of %s (version %d), but it had the same template and the same contents since %s",
		p.id.name, o.when(c.At), o.when(s.at), s.version, o.when(p.startedAt))
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

// excuseFor returns why a pod was or may have been replaced rightly; empty if there is no reason.
func (o *Oracle) excuseFor(p *pod, at time.Time) string {
	w := p.workload
	if p.stamp == nil {
		return "template not known"
	}
	judged := false
	for i := len(w.stamps) - 1; i >= 0; i-- {
		s := w.stamps[i]
		if i < len(w.stamps)-1 && at.Sub(w.stamps[i+1].at) > lag {
			break // s was replaced long ago
		}
		switch {
		case s.visible != p.stamp.visible:
			return "template changed"
		case s.marks == p.stamp.marks:
			continue // it asks for no replacement
		}
		if excuse := o.causeOf(p, s); excuse != "" {
			return excuse
		}
		judged = true
	}
	if p.stamp.same(w.last()) || !judged {
		return "not by the template"
	}
	return ""
}

// causeOf returns what may have led from the stamp of a pod to a later one; empty if nothing has.
func (o *Oracle) causeOf(p *pod, s *stamp) string {
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

// keptOutside tells whether a time in which the workload was not looked after makes no difference: the webhook saw the stamp,
// and no other template was made since. A label that comes and goes restarts nothing then.
func (o *Oracle) keptOutside(p *pod, s *stamp) bool {
	for _, other := range p.workload.stamps {
		if other.version > p.stamp.version && other.version < s.version && other.visible != p.stamp.visible {
			return false
		}
	}
	return s.eligible && (p.stamp.seen || p.stamp.program)
}

// contentCause returns which change of an object may have led from the stamp of a pod to a later one.
func (o *Oracle) contentCause(p *pod, s *stamp, r ref) string {
	w := p.workload
	h := o.contents.of(w.id.namespace, r)
	set := o.beliefs(w, p.stamp, r)
	if w.needs[r] == required && w.fumbled <= p.stamp.version && len(set) > 1 {
		delete(set, absent) // the pods waited for it
	}
	window := &period{from: s.arrived, to: s.version}
	if s.program && (s.direct || !o.healthy(w, s.arrivedAt, s.at)) {
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

// hasBetween tells whether another stamp came between two.
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
