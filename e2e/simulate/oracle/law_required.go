package oracle

// missingUnder returns the circumstances in which the program restarted a workload although an object is missing.
func (l *requiredLaw) missingUnder(w *workload, s *stamp, r ref) string {
	edits := l.contents.of(w.id.namespace, r).within(0, s.version)
	since := edits[len(edits)-1].at
	if s.program && (s.arrivedAt.Sub(since) < justNow || !l.watched(w, since, s.arrivedAt)) {
		return "/just-deleted" // the program may not have heard of it when it asked for the restart
	}
	return ""
}

// requiredLaw is the law "kept" for objects that pods require.
type requiredLaw struct {
	*ledger
	passive
}

// stamped is the law "kept" for objects that pods require: where one was deleted, the program does not restart pods that
// could not start then.
func (l *requiredLaw) stamped(r restamp) {
	w, before, s := r.workload, r.before, r.stamp
	if !s.replacesPods(before) || !l.mustHold(s) || w.unclearSince(before) || !w.knowinglyMade(before, s) {
		return
	}
	how := "missing-required"
	if !s.program {
		how += "/" + l.by(s)
	}
	for _, r := range w.refs {
		if w.needs[r] != required || w.triggers[r].missing || w.tracked[r] > before.version || l.beliefs(w, before, r)[absent] {
			continue
		}
		l.count("required objects judged")
		if l.missingFor(w, s, r) {
			l.violate(s.at, broken{"kept", w.id.String(), how + l.missingUnder(w, s, r)},
				"the program restarted it at %s although %s is missing, which its pods require: they cannot start", l.when(s.at), r)
		}
	}
}

// mustHold reports whether the flags surely have the program wait for what is missing.
func (l *requiredLaw) mustHold(s *stamp) bool {
	return !l.options.ReloadMissingRequired && l.policy.settled(s.arrivedAt)
}

// knowinglyMade reports whether the program made a stamp and could know what had changed: where there was no space for what it records
// of the pods' configuration, the hash does not say that.
func (w *workload) knowinglyMade(before, s *stamp) bool {
	return w.story.unrecorded < before.version && (s.program || w.onlyStamped(before, s))
}

// missingFor reports whether an object was absent all the time in which the program may have read it for a stamp.
func (l *requiredLaw) missingFor(w *workload, s *stamp, r ref) bool {
	window := &period{from: s.arrived, to: s.version}
	if s.direct {
		window.from = min(window.from, l.versionAt(s.arrivedAt.Add(-readLongBefore)))
	}
	set := believed{}
	set.addPeriod(l.contents.of(w.id.namespace, r), window, l.version)
	content, alone := set.only()
	return alone && content == absent
}

// onlyStamped reports whether a user's request that the webhook saw left the template and the lists as they were, so that the
// program alone has changed it.
func (w *workload) onlyStamped(before, s *stamp) bool {
	return s.seen && s.eligible && before.eligible && !s.handmade && s.visible == before.visible && before.managed != "" &&
		w.relisted <= before.version
}
