package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A content can change back after a CronJob was run with it and before its reload is stamped. Nothing is due then but another run.

// returnSlack is how long the answer to the creation of a Job may take: the program gives up requests.
const returnSlack = 5 * time.Second

// reply records that the program knows of a Job that it has made for a CronJob.
func (l *runsLaw) reply(r world.Reply) {
	if r.Lost || r.Failure != nil || r.At.Sub(r.Call.Arrived) > returnSlack {
		return
	}
	for _, runs := range l.runs {
		if last := len(runs) - 1; last >= 0 && runs[last].call == r.Call {
			runs[last].known = true
		}
	}
}

// isWithdrawn reports whether the last run of a CronJob surely had a content that is gone, while all that runs it is as it was at the last
// stamp, which was before. It is not judged where anything has disturbed the program since, or a user has written the CronJob.
func (l *runsLaw) isWithdrawn(w *workload) bool {
	s, runs := w.last(), l.runs[w.uid]
	if w.id.plural != "cronjobs" || s == nil || len(runs) == 0 {
		return false
	}
	made := runs[len(runs)-1]
	calm, known := l.calmAfter(w, l.faults.restored(), (*span).deniesWorkloads)
	before := made.at.Add(-notice)
	switch {
	case !made.known, made.version <= max(s.version, l.ledFrom), !w.eligible, suspended(w.object), s.direct:
		return false
	case !known, calm.After(earliest(before, s.arrivedAt)), w.acts[2].After(before), l.slow.during(w.id.namespace, before, made.at):
		return false
	case w.retracked > s.version, w.keyChanged > s.version, w.uncertainSince(s), l.unclearCause(w, s):
		return false
	}
	return l.isBack(w, s, made)
}

// isBack reports whether everything that runs a CronJob is as the webhook has read it for a stamp, and was not at a run.
func (l *runsLaw) isBack(w *workload, s *stamp, made run) bool {
	gone := false
	for r := range l.atOnce(w) {
		h := l.contents.of(w.id.namespace, r)
		read := believed{}
		read.addPeriod(h, &period{from: s.arrived, to: s.version}, l.version)
		if stamped, sure := read.only(); !sure || stamped != h.now() {
			return false
		}
		gone = gone || h.now() != absent && !l.hadContent(h, &period{from: made.content, to: made.version}, h.now())
	}
	return gone
}

// judgeReturn looks whether a run is late that a content owes which is back.
func (l *runsLaw) judgeReturn(w *workload, now time.Time) {
	since, owed := l.withdrawn[w.uid]
	switch {
	case !l.isWithdrawn(w):
		if owed {
			l.count("runs after a return")
		}
		delete(l.withdrawn, w.uid)
	case !owed, l.waitsForRuns(w), since.Before(l.slow.last(w.id.namespace)):
		l.withdrawn[w.uid] = now
	case now.Sub(since) > l.slowest().refractory+runPause+l.options.Slack+jobSlack:
		l.violate(now, broken{"jobs", w.id.String(), "run/missing-after-return"},
			"the program ran it with a content that was gone at %s, and has not run it since", l.when(since))
		l.withdrawn[w.uid] = now
	}
}
