package oracle

import "slices"

// editCause returns what users did that may have led from the stamp of a pod to a later one.
func (l *keptLaw) editCause(p *pod, s *stamp) string {
	switch {
	case s.version <= p.stamp.version:
		return "earlier template"
	case !s.program && !s.seen:
		return "webhook away"
	case s.endsRestart:
		return "restart ended"
	case l.leftByStrategy(p, s):
		return "what an earlier strategy has written"
	case s.reloader && l.keepsReloads(p, s):
		return "Reloader has reloaded"
	case l.byLists(p, s):
		return "lists edited"
	case p.stamp.foreign || s.foreign || s.handmade:
		return "managed annotations edited"
	}
	return ""
}

// leftByStrategy reports whether a user's write may differ from the template of a pod in what another strategy has written. Without a
// strategy, that is part of the template like any other variable.
func (l *keptLaw) leftByStrategy(p *pod, s *stamp) bool {
	return l.policy.strategies && !s.program && s.hash == p.stamp.hash && (l.options.Strategy == "" || !l.policy.settled(s.arrivedAt))
}

// keepsReloads reports whether what Stakater's Reloader writes stays on a template: where the workload is not looked after, and where no
// strategy is set, since it is then part of the template like any other variable.
func (l *keptLaw) keepsReloads(p *pod, s *stamp) bool {
	return l.options.Strategy == "" || outOfCare(p, s)
}

// byLists reports whether an edit of the lists may have led from the stamp of a pod to a later one. The edit stamps at once, or never: what
// is listed while the webhook does not answer is adopted. Later ones only count where the hash alone says what the pods run with, since it
// is over the earlier lists, and where it is the digest of the lists.
func (l *keptLaw) byLists(p *pod, s *stamp) bool {
	w := p.workload
	if w.relisted <= p.stamp.version {
		return false
	}
	return l.options.Revision || s.unrecorded || w.lastHandEdit > p.stamp.version || slices.ContainsFunc(w.stamps, func(e *stamp) bool {
		return e.relisted && e.version > p.stamp.version && e.version <= s.version
	})
}

// outOfCare reports whether the webhook saw a stamp of a workload that is excluded or opted out, but in scope.
func outOfCare(p *pod, s *stamp) bool {
	return !s.eligible && s.guarded && s.seen && (p.stamp.seen || p.stamp.program)
}

// rolledBackWhileExcluded reports whether a stamp brings back what users see of a pod's template, after a release that brought
// configuration along. That is a documented limit: the hash stays that of the release, since the write has none.
func (l *keptLaw) rolledBackWhileExcluded(p *pod, s *stamp) bool {
	w := p.workload
	release := w.stampAt(s.version - 1)
	return release.visible != s.visible && release.managed == s.managed && slices.ContainsFunc(w.refs, func(r ref) bool {
		return len(l.contents.of(w.id.namespace, r).within(p.stamp.arrived, release.version)) > 0
	})
}

// adoptsRequired reports whether an object that the pods may require may have been absent by a stamp, and is there by a later one. The pods
// have waited for it, and it is adopted: to the hash of the stamp it is still absent.
func (l *keptLaw) adoptsRequired(w *workload, first, s *stamp) bool {
	return slices.ContainsFunc(first.refs, func(r ref) bool {
		return w.needs[r] != optional && l.believes(w, first, r, absent) && l.contents.of(w.id.namespace, r).at(s.version) != absent
	})
}
