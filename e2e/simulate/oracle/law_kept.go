package oracle

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// keptLaw is the law "kept" for pods.
type keptLaw struct {
	*ledger
	passive
}

func (l *keptLaw) storing(c world.Commit) {
	if p := l.pods[idOf(c.Key)]; p != nil && (c.New == nil || deleting(c.New)) {
		l.judge(p, c)
	}
}

// judge is the law "kept": no pod is replaced that has the template users see and the contents listed.
func (l *keptLaw) judge(p *pod, c world.Commit) {
	w := p.workload
	if c.Call != nil || w.gone || deleting(w.object) || !p.running || w.id.plural == "cronjobs" {
		return
	}
	if l.inEndingNamespace(w) {
		return
	}
	l.count("pods replaced")
	if excuse := l.excuseFor(p, c); excuse != "" {
		l.count("pods replaced with cause: " + excuse)
		return
	}
	s := w.stampAt(l.decided(c))
	l.count("pods replaced without cause")
	l.violate(c.At, broken{"kept", w.id.String(), l.by(s) + l.replacedUnder(p, s)},
		"pod %s was replaced at %s because of the template of %s (version %d), but it had the same template and the same contents since %s",
		p.id.name, l.when(c.At), l.when(s.at), s.version, l.when(p.startedAt))
}

// unclearSince reports whether it is not clear what the program could know since a stamp.
func (w *workload) unclearSince(s *stamp) bool {
	return w.uncertain(s) || s.foreign || w.lastHandEdit > s.version
}

// excuseFor returns why a pod was or may have been replaced rightly; empty if there is no reason. The controller decides by the
// template of that moment: for the pods of a ReplicaSet when it shrinks the set, else when it deletes the pod.
func (l *keptLaw) excuseFor(p *pod, c world.Commit) string {
	if p.stamp == nil {
		return "template not known"
	}
	if before, restart := l.restartOf(p, c); restart != nil {
		return l.restartCause(p, before, restart)
	}
	s := p.workload.stampAt(l.decided(c))
	switch {
	case s == nil:
		return "template not known"
	case s.visible != p.stamp.visible:
		return "template changed"
	case s.managed == p.stamp.managed:
		return "not by the template"
	}
	return l.causeOf(p, s)
}

// decided returns the version at which it was decided that a pod is deleted.
func (l *keptLaw) decided(c world.Commit) int64 {
	if _, owner := controllerOf(c.Old); l.shrunk[owner] > 0 {
		return l.shrunk[owner]
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
func (l *keptLaw) causeOf(p *pod, s *stamp) string {
	if excuse := l.editCause(p, s); excuse != "" {
		return excuse
	}
	if outOfCare(p, s) {
		if l.rolledBackWhileExcluded(p, s) {
			return "release with configuration undone while excluded"
		}
		return "" // the program restarts nothing then, whatever the contents
	}
	if excuse := l.hashCause(p, s); excuse != "" {
		return excuse
	}
	for _, r := range p.workload.refs {
		if excuse := cmp.Or(l.contentCause(p, s, r), l.unclearGraph(p, s, r)); excuse != "" {
			return excuse
		}
	}
	if l.droppedChanged(p) {
		return "content changed"
	}
	return ""
}

// hashCause returns why the hash of a pod means nothing, or is another one although all contents are the same.
func (l *keptLaw) hashCause(p *pod, s *stamp) string {
	w := p.workload
	switch {
	case l.sameThroughout(p, s):
		return ""
	case w.ineligibleAt > p.stamp.version && !keptOutside(p, s):
		return "not looked after"
	case w.uncertainOfAll(p.stamp):
		return "not known yet"
	case w.lostKeySince(p.stamp):
		return "key lost"
	case w.broughtBack(p.stamp, s) != "":
		return w.broughtBack(p.stamp, s)
	case l.options.Revision && l.by(s) == "verified-reload" && w.rewritten > w.stampedSince(p.stamp):
		return "a client waits for the digest of the lists as they are written"
	case l.options.Revision && l.returnedBetween(w, p.stamp, s):
		return "a digest of versions does not return with the content"
	}
	return ""
}

// sameThroughout reports whether a key was lost since the stamp of a pod, or the program may only have looked at it by the next one, and each
// object had the content of the pod whenever it may have looked: then neither restarts the pod. Managed annotations of another workload or
// template may have been compared instead.
func (l *keptLaw) sameThroughout(p *pod, s *stamp) bool {
	w := p.workload
	if !w.lostKeySince(p.stamp) && (!w.uncertainOfAll(p.stamp) || !l.looksInTime(w, p.stamp, s)) {
		return false
	}
	looked := w.ineligibleAt <= p.stamp.version && !w.hasBetween(p.stamp, s) && w.lastHandEdit <= p.stamp.version
	return looked && !p.stamp.mayBringOthers() && !slices.ContainsFunc(w.refs, func(r ref) bool {
		content, alone := l.contentsBetween(p, s, r).only()
		return isReferent(r.plural) || !alone || content != l.contents.of(w.id.namespace, r).at(p.runsSince())
	})
}

// broughtBack returns why the hash of an earlier stamp does not come back with its template.
func (w *workload) broughtBack(earlier, s *stamp) string {
	first := w.firstWith(earlier)
	switch {
	case w.keyChanged > first.version && w.bringsBack(s, earlier):
		return "template of another content brought back, and the key changed"
	case w.bringsHashOf(earlier, s) && !slices.Equal(first.refs, s.refs):
		return "template with a hash of other objects brought back"
	}
	return ""
}

// bringsHashOf reports whether a user's write brings the hash of an earlier stamp without a Record, and gets another one from the webhook:
// the program cannot know whether that hash is of other objects or of another content. It is a documented limit.
func (w *workload) bringsHashOf(earlier, s *stamp) bool {
	hash, _, _ := strings.Cut(earlier.hash, " ")
	return !s.program && s.call != nil && hash != "" && earlier.hash != s.hash &&
		bytes.Contains(s.call.Body, []byte(hash)) && !bytes.Contains(s.call.Body, []byte(recordAnnotation))
}

// bringsBack reports whether a user's write brings the template of an earlier stamp with another hash than that of the present one.
// The webhook gives it the hash of the present content: under a newer key that is not the hash of the pods.
func (w *workload) bringsBack(s, present *stamp) bool {
	return !s.program && s.call != nil && slices.ContainsFunc(w.stamps, func(e *stamp) bool {
		hash, _, _ := strings.Cut(e.hash, " ")
		return hash != "" && e.version < s.version && e.hash != present.hash && e.hash != s.hash && bytes.Contains(s.call.Body, []byte(hash))
	})
}

// droppedChanged reports whether an object changed that the workload of a pod has tracked since the pod's stamp, and tracks no more.
func (l *keptLaw) droppedChanged(p *pod) bool {
	for r, until := range p.workload.dropped { // at least until then
		changes := l.contents.of(p.workload.id.namespace, r).within(p.stamp.arrived, l.versionAt(until.at.Add(chance)))
		if until.version > p.stamp.version && len(changes) > 0 {
			return true
		}
	}
	return false
}

// lostKeySince reports whether a digest key was lost after a stamp.
func (w *workload) lostKeySince(s *stamp) bool {
	return slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.lost && a.follows(s) })
}

// keptOutside reports whether a time in which the workload was not looked after makes no difference: the webhook saw the stamp,
// and no other template was made since. A label that comes and goes restarts nothing then.
func keptOutside(p *pod, s *stamp) bool {
	for _, other := range p.workload.stamps {
		if other.version > p.stamp.version && other.version < s.version && other.visible != p.stamp.visible {
			return false
		}
	}
	return (s.eligible || s.guarded && s.visible == p.stamp.visible) && (p.stamp.seen || p.stamp.program)
}

// contentCause returns which change of an object may have led from the stamp of a pod to a later one.
func (l *keptLaw) contentCause(p *pod, s *stamp, r ref) string {
	h := l.contents.of(p.workload.id.namespace, r)
	if l.differed(p, s, r, h) {
		return "content changed"
	}
	if len(h.within(p.stamp.version, s.version)) > 0 {
		if limit := l.changedBackLimit(p, s, r, h); limit != "" {
			return limit
		}
	}
	if l.options.Revision && !s.program && h.touchedWithin(p.stamp.arrived, s.version) {
		return "version changed"
	}
	if l.options.Revision && l.by(s) == "verified-reload" && h.touchedWithin(p.workload.stampedSince(p.stamp), s.version) {
		return "a client waits for its digest"
	}
	return ""
}

// differed reports whether the program may have found another content of an object than that of a pod.
func (l *keptLaw) differed(p *pod, s *stamp, r ref, h *history) bool {
	w, between := p.workload, l.contentsBetween(p, s, r)
	if l.policy.triggers > p.stamp.version {
		between[h.at(p.runsSince())] = true
		return len(between) > 1 || between[absent] // what counted before may still be recorded
	}
	if by := w.triggers[r]; by.deleted || by.created && (h.at(p.runsSince()) == absent || l.believes(w, p.stamp, r, absent)) {
		content, alone := between.only()
		return !alone || content != h.at(p.runsSince())
	}
	// It may come and go.
	between[h.at(p.runsSince())] = true
	if content, ok := h.beforeAbsence(p.stamp.version); ok && w.tracked[r] < p.stamp.version {
		between[content] = true // a release meanwhile makes no difference
	}
	delete(between, absent)
	return len(between) > 1
}

// stampedSince returns since when a workload's templates in a row have had the managed annotations of a stamp: a release that
// is out of the program's care keeps them, though its pods start with later versions.
func (w *workload) stampedSince(s *stamp) int64 {
	since := s.arrived
	for _, earlier := range slices.Backward(w.stamps) {
		switch {
		case earlier.version > s.version:
		case earlier.managed != s.managed:
			return since
		default:
			since = earlier.arrived
			if earlier.isRestart() {
				return since
			}
		}
	}
	return since
}

// contentsBetween returns the contents of an object that the program may have compared: what it may take for that of a pod,
// and what it may have read for a later stamp.
func (l *keptLaw) contentsBetween(p *pod, s *stamp, r ref) believed {
	w := p.workload
	set := l.beliefs(w, p.stamp, r)
	if w.needs[r] == required && w.lastHandEdit <= p.stamp.version && len(set) > 1 {
		delete(set, absent) // the pods waited for it
	}
	window := &period{from: s.arrived, to: s.version}
	if s.program {
		window.from = l.readSince(w, s)
	}
	set.addPeriod(l.contents.of(w.id.namespace, r), window, l.version)
	return set
}

// changedBackLimit returns the documented limit by which a content that changed and came back may replace a pod.
func (l *keptLaw) changedBackLimit(p *pod, s *stamp, r ref, h *history) string {
	w := p.workload
	switch {
	case w.keyChanged > p.stamp.version:
		return "content and key changed"
	case !p.stamp.hashed():
		return "content changed and first stamp"
	case w.restamped(p.stamp, s) && (!l.covers(w, w.firstWith(p.stamp), s) || l.adoptsRequired(w, w.firstWith(p.stamp), s)):
		return "content changed, and what the hash is over"
	case w.needs[r] != optional && hadAbsence(h, p.stamp.version, s.version) && w.hasBetween(p.stamp, s):
		return "release while a required object was missing"
	}
	return ""
}

// firstWith returns the first stamp with the hash of another one: later ones that are not due keep it.
func (w *workload) firstWith(s *stamp) *stamp {
	for _, earlier := range w.stamps {
		if earlier.hash == s.hash {
			return earlier
		}
	}
	return s
}

// restamped reports whether a stamp with another hash came between two.
func (w *workload) restamped(first, last *stamp) bool {
	return slices.ContainsFunc(w.stamps, func(s *stamp) bool {
		return s.version > first.version && s.version < last.version && s.hash != first.hash
	})
}

// covers reports whether the hash of a stamp is over what a later one is over, and under its key, so that the content of then brings it
// back. What is tracked without a restart is not in the hash, and neither is a custom resource that was held before anything was known
// of it.
func (l *keptLaw) covers(w *workload, first, s *stamp) bool {
	return w.keyChanged <= first.version && slices.Equal(first.refs, s.refs) && !slices.ContainsFunc(first.refs, func(r ref) bool {
		known := slices.ContainsFunc(w.stamps, func(e *stamp) bool { return e.version < first.version && slices.Contains(e.refs, r) })
		return isReferent(r.plural) && !known && l.mayHold(w, first, r)
	})
}

// hasBetween reports whether another stamp came between two.
func (w *workload) hasBetween(first, last *stamp) bool {
	return slices.ContainsFunc(w.stamps, func(s *stamp) bool { return s.version > first.version && s.version < last.version })
}

func hadAbsence(h *history, from, to int64) bool {
	return slices.ContainsFunc(h.within(from, to), func(e edit) bool { return e.content == absent })
}

// replacedUnder returns the circumstances in which a pod was replaced without cause.
func (l *keptLaw) replacedUnder(p *pod, s *stamp) string {
	w := p.workload
	switch {
	case w.excluded || !s.eligible || !p.stamp.eligible:
		return "/excluded"
	case l.returnedBetween(w, p.stamp, s):
		return "/returned"
	case l.touchedBetween(w, p.stamp, s):
		return "/touched"
	}
	return ""
}

// returnedBetween reports whether a listed object changed and changed back, and the workload was stamped in between.
func (l *keptLaw) returnedBetween(w *workload, first, last *stamp) bool {
	return w.hasBetween(first, last) && slices.ContainsFunc(w.refs, func(r ref) bool {
		return len(l.contents.of(w.id.namespace, r).within(first.version, last.version)) > 0
	})
}

// touchedBetween reports whether a listed object was written between two stamps, although its content is the same.
func (l *keptLaw) touchedBetween(w *workload, first, last *stamp) bool {
	return slices.ContainsFunc(w.refs, func(r ref) bool {
		return l.contents.of(w.id.namespace, r).touchedWithin(first.arrived, last.version)
	})
}

// unclearGraph returns why the program may have seen a state of a custom resource that it never had, when it made one of the two
// stamps: its watches deliver each resource for itself. Empty for other objects.
func (l *keptLaw) unclearGraph(p *pod, s *stamp, r ref) string {
	if !isReferent(r.plural) {
		return ""
	}
	n := l.graph.nodes[id{r.plural, p.workload.id.namespace, r.name}]
	for _, at := range []*stamp{p.stamp, s} {
		from := at.arrived // the webhook reads what is live
		if !at.seen && (!at.program || at.direct) {
			from = l.versionAt(at.arrivedAt.Add(-readBefore))
		}
		if n.movedWithin(from, at.version) {
			return "graph in motion"
		}
		if !l.healthy(p.workload, at.arrivedAt.Add(-readBefore)) && n.movedWithin(l.versionAt(at.arrivedAt.Add(-longRecovery)), at.version) {
			return "graph in motion and fault"
		}
	}
	return ""
}
