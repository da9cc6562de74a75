package oracle

// restampLaw is the law "restamp": the program gives no template another stamp while all contents are as they were. Unlike "kept", it
// judges workloads without running pods, too, and CronJobs.
type restampLaw struct {
	*ledger
	passive
}

func (l *restampLaw) stamped(r restamp) {
	w, before, s := r.workload, r.before, r.stamp
	if !r.byProgram() || s.isRestart() || s.restarts != before.restarts || l.unclear(w, before) || !l.looksInTime(w, before, s) {
		return
	}
	l.count("stamps compared with the one before")
	for _, ref := range w.refs {
		if kept, _, _ := l.changed(w, before, s, ref); !kept || isReferent(ref.plural) || w.tracked[ref] > before.version {
			return
		}
	}
	l.violate(s.at, broken{"restamp", w.id.String(), "unchanged"}, "the program changed the template at %s (version %d), but all contents are as at %s",
		l.when(s.at), s.version, l.when(before.at))
}

// unclear reports whether the program may compare something else with the contents than the oracle does.
func (l *restampLaw) unclear(w *workload, before *stamp) bool {
	if w.comparesOthers(before) || w.story.unrecorded >= before.version || len(w.refs) == 0 || !l.scope.flags.Clear {
		return true
	}
	for _, lapsed := range w.dropped {
		if lapsed.version >= before.version {
			return true
		}
	}
	return false
}
