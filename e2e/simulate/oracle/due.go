package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// due is a reload that must come.
type due struct {
	// since is when it became due; zero if none is.
	since time.Time
	// of is the object that changed, how says how.
	of  ref
	how string
	// reported means that its lateness was reported, refused that it was judged what the program says of a permission that is missing.
	reported, refused bool
}

// readDue looks whether a reload is due now.
func (l *ledger) readDue(w *workload, now time.Time) {
	r, how := l.dueOf(w)
	if l.waitsForRuns(w) {
		w.waited = now
	}
	if how == "" {
		w.due = due{}
		return
	}
	if s := w.last(); w.due.since.IsZero() || s.at.After(w.due.since) {
		w.due = due{since: now, of: r, how: how}
		l.count("reloads due")
	}
}

// dueOf returns an object that has surely changed since the stamp, and how; nothing if no reload is due for sure.
func (l *ledger) dueOf(w *workload) (r ref, how string) {
	s := w.last()
	if !w.eligible || s == nil || l.held(w) {
		return ref{}, ""
	}
	for _, r := range w.refs {
		if l.referentHeld(w, r) {
			continue
		}
		now := l.contents.of(w.id.namespace, r).now()
		if l.believes(w, s, r, now) {
			continue
		}
		switch {
		case now == absent && !w.triggers[r].deleted:
			continue
		case now == absent:
			return r, "deleted"
		case l.believes(w, s, r, absent):
			return r, "created"
		}
		return r, "modified"
	}
	return ref{}, ""
}

// unrecordedWhileHeld reports whether a workload lacks a record that the program can read, or had no space for it since its last stamp,
// and a custom resource is held: the hash alone cannot be compared without that one. It is a documented limit.
func (l *configLog) unrecordedWhileHeld(w *workload) bool {
	s := w.last()
	lacks := !strings.HasPrefix(world.Text(world.Annotations(w.object), l.options.Prefix+recordAnnotation), "v1:")
	return s != nil && (lacks || w.story.unrecorded >= s.version) &&
		slices.ContainsFunc(w.refs, func(r ref) bool { return l.referentHeld(w, r) })
}

// held means that an object is absent that the pods need, or may need: the program may, and by default must, wait for it. So it must where
// nothing can be compared.
func (l *configLog) held(w *workload) bool {
	if l.unrecordedWhileHeld(w) {
		return true
	}
	for _, r := range w.refs {
		if w.needs[r] == optional || w.needs[r] == required && (l.options.ReloadMissingRequired || w.triggers[r].missing) {
			continue
		}
		if l.contents.of(w.id.namespace, r).now() == absent {
			return true
		}
	}
	return false
}

// saysFull reports whether a reload is due that is not possible as the pod template is full, and a Warning Event says so.
func (l *ledger) saysFull(w *workload) bool {
	due := w.due.since
	if due.IsZero() || !l.full(w) {
		return false
	}
	allowed, written := l.eventsAllowedSince()
	return l.events.failed[w.uid].After(due.Add(-warnEvery)) || !written || allowed.After(due)
}
