package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// With the concurrencyPolicy Forbid the program waits until no other Job of it is active, with Replace
// it deletes the active Jobs first.

// The policies that forbid two Jobs at the same time.
const (
	forbid  = "Forbid"
	replace = "Replace"
)

// runPause is the longest time between two attempts to run a CronJob whose Jobs are active.
const runPause = 30 * time.Second

// policyOf returns the concurrencyPolicy of a CronJob.
func policyOf(cronJob world.Object) string {
	return world.Text(cronJob, "spec", "concurrencyPolicy")
}

// run is a Job that the program made for a CronJob, with the content of a version or a later one.
type run struct {
	versionTime

	content int64
	// waited is the version of the stamp before it for which it had to wait; 0 if it did not.
	waited int64
	// call creates the Job, known means that the program has its answer.
	call  *world.Call
	known bool
}

// runsLaw is the law "jobs" for the runs of CronJobs.
type runsLaw struct {
	*ledger
	passive

	// runs has the Jobs that the program made for a CronJob, by its UID.
	runs map[string][]run
	// owed has the runs that must follow stamps, by the UID of the CronJob.
	owed map[string]*owedRun
	// postponed has the stamp before the first one since the last run whose run had to wait, by the UID of the CronJob.
	postponed map[string]*stamp
	// withdrawn is since when a run must follow that had a content which is gone, by the UID of the CronJob.
	withdrawn map[string]time.Time
	// ledFrom is the version from which on the present leader leads.
	ledFrom int64
}

func newRunsLaw(l *ledger) *runsLaw {
	return &runsLaw{ledger: l, runs: map[string][]run{}, owed: map[string]*owedRun{}, postponed: map[string]*stamp{}, withdrawn: map[string]time.Time{}}
}

// judgeConcurrency judges a Job that the program has made for a CronJob. A Job that was created just before may have come after
// the program has listed them.
func (l *runsLaw) judgeConcurrency(w *workload, made *job, c world.Commit) {
	policy := policyOf(w.object)
	if policy != forbid && policy != replace {
		return
	}
	l.count("concurrency of runs judged")
	known := c.Call.Arrived.Add(-readLongBefore)
	for _, other := range l.activeRuns(w) {
		if other != made && other.created.at.Before(known) {
			l.violate(c.At, broken{"jobs", w.id.String(), "run/concurrent"},
				"its concurrencyPolicy is %s, but the program ran it at %s while %s of %s was active",
				policy, l.when(c.At), other.workload.id, l.when(other.created.at))
		}
	}
}

// replacedRun returns what is wrong with the deletion of a Job that has a controller; empty for a Job that a run replaces.
func (l *runsLaw) replacedRun(j *job, c world.Commit) string {
	kind, owner := controllerOf(j.workload.object)
	w := l.byUID[owner]
	if kind != "CronJob" || w == nil {
		return "controlled"
	}
	if world.Finished(j.workload.object) && c.Call.Arrived.Sub(l.finishedAt(j)) >= readLongBefore {
		return "finished"
	}
	if c.At.Sub(w.acts[2]) < notice {
		return ""
	}
	switch {
	case policyOf(w.object) != replace:
		return "controlled"
	case suspended(w.object):
		return "suspended"
	}
	if s := w.lastOwn(); s != nil && w.keyChanged <= s.version && !w.uncertainSince(s) && !l.runsChangedSince(w, s) {
		return "no-cause"
	}
	l.count("Jobs replaced by a run")
	return ""
}

// runsChangedSince reports whether something that runs a CronJob has changed since a stamp.
func (l *runsLaw) runsChangedSince(w *workload, s *stamp) bool {
	from := l.ranBefore(w, s)
	for r, by := range l.atOnce(w) {
		if l.editsAtOnce(l.contents.of(w.id.namespace, r).within(from, l.version), by, s.arrived) > 0 {
			return true
		}
	}
	return false
}

// unclearCause reports whether it is not clear which changes lead to a run: after a lost key, while replicas or installations look at different
// objects, or where they have looked at others since the stamp.
func (l *runsLaw) unclearCause(w *workload, s *stamp) bool {
	return w.inPart || w.lostKeySince(s) || !l.scope.flags.Clear || l.scope.changed.After(s.at)
}

// judge judges a Job that the program has made for a CronJob.
func (l *runsLaw) judge(j *job, c world.Commit) {
	kind, owner := controllerOf(c.New)
	w := l.byUID[owner]
	if kind != "CronJob" || w == nil {
		l.violate(c.At, broken{"jobs", j.workload.id.String(), "created/unknown"},
			"the program created it at %s, neither in place of another one nor for a CronJob", l.when(c.At))
		return
	}
	l.count("runs of CronJobs")
	l.runs[owner] = append(l.runs[owner], run{
		versionTime: versionTime{c.At, c.Version}, content: l.versionAt(l.readForRun(w, c.Call)), call: c.Call,
	})
	s := l.reloadOf(w)
	if s == nil || c.At.Sub(w.acts[2]) < notice {
		return
	}
	l.judgeConcurrency(w, j, c)
	l.judgeTemplate(w, c)
	if l.unclearCause(w, s) {
		return
	}
	edits, runs := l.editsForRuns(w, s, c.Version), l.runsForChangesSince(w, s)
	switch {
	case suspended(w.object):
		l.violate(c.At, broken{"jobs", w.id.String(), "run/suspended"}, "it is suspended, but the program ran it at %s", l.when(c.At))
	case runs > edits && !w.uncertainSince(s):
		l.violate(c.At, broken{"jobs", w.id.String(), "run/twice"}, "the program ran it %d times since %s, the last time at %s, for %d changes",
			runs, l.when(s.at), l.when(c.At), edits)
	}
}

// reloadOf returns the stamp after which the last run of a CronJob was due: that before the one that did not wait for it.
func (l *runsLaw) reloadOf(w *workload) *stamp {
	s := w.lastOwn()
	before := l.postponed[w.uid]
	if before == nil {
		return s
	}
	if s != nil {
		l.runs[w.uid][len(l.runs[w.uid])-1].waited = s.version
	}
	delete(l.postponed, w.uid)
	return before
}

// editsForRuns counts the changes since a stamp, up to a version, for which a CronJob may have been run.
func (l *runsLaw) editsForRuns(w *workload, s *stamp, until int64) (edits int) {
	from := l.ranBefore(w, s)
	for _, run := range l.runs[w.uid] {
		if run.version > s.arrived {
			from = min(from, run.content) // the content may be older than the stamp
		}
	}
	for r, by := range l.atOnce(w) {
		edits += l.editsAtOnce(l.contents.of(w.id.namespace, r).within(from, until), by, s.arrived)
	}
	return edits
}

// readForRun returns when the program has read, at the earliest, the content that it makes a Job of a CronJob for: that is just before,
// unless the process was frozen, or its requests were slow, between the two.
func (l *runsLaw) readForRun(w *workload, create *world.Call) time.Time {
	at := create.Arrived.Add(-justNow)
	if l.slow.during(w.id.namespace, at, create.Arrived) {
		at = create.Arrived.Add(-readLongBefore)
	}
	for _, s := range slices.Backward(l.faults.spans) {
		before := s.from.Add(-justNow)
		if s.kind == "frozen" && isProcessOf(create.Client, s.scope) && (s.open || s.to.After(at)) && before.Before(at) {
			at = before
		}
	}
	return at
}

// ranBefore returns the version with whose content a CronJob was run for a stamp: under constant change that is with an older content than
// the one that is stamped. Where it was not run, the stamp counts.
func (l *runsLaw) ranBefore(w *workload, s *stamp) int64 {
	for _, run := range slices.Backward(l.runs[w.uid]) {
		before := w.stampAt(s.version - 1)
		if run.version <= s.arrived && before != nil && run.version > before.version {
			return run.content
		}
	}
	return s.arrived
}

// runsSince counts the runs after a version.
func (l *runsLaw) runsSince(w *workload, version int64) int {
	n := 0
	for _, run := range l.runs[w.uid] {
		if run.version > version {
			n++
		}
	}
	return n
}

// runsForChangesSince counts the runs after a stamp, without the one that had to wait until after it.
func (l *runsLaw) runsForChangesSince(w *workload, s *stamp) int {
	n := l.runsSince(w, s.arrived)
	for _, run := range l.runs[w.uid] {
		if run.version > s.arrived && run.waited > 0 && run.waited <= s.version {
			n--
		}
	}
	return n
}

// stamped looks whether a CronJob was run before its reload was stored, or must be run after it, and what a release owes.
func (l *runsLaw) stamped(r restamp) {
	w, before, s := r.workload, r.before, r.stamp
	l.released(r)
	if l.hadToWait(w, s) && r.byProgram() && l.postponed[w.uid] == nil {
		l.postponed[w.uid] = before
	}
	if !r.byProgram() || !l.surelyRuns(w, before, s) {
		return
	}
	for r := range l.atOnce(w) {
		if _, modified, _ := l.changed(w, before, s, r); !modified {
			continue
		}
		l.judgeReload(w, &owedRun{before, r, s, s.at})
		return
	}
}

// surelyRuns reports whether it is clear that changes between two stamps of a CronJob run it.
func (l *runsLaw) surelyRuns(w *workload, before, s *stamp) bool {
	return w.id.plural == "cronjobs" && !w.inPart && !suspended(w.object) && s.at.Sub(w.acts[2]) >= notice &&
		l.healthy(w, s.arrivedAt) && !w.unclearSince(before) && w.keyChanged <= before.version
}

// hadToWait reports whether the run for a stamp that was made just now may have had to wait for another Job.
func (l *runsLaw) hadToWait(w *workload, s *stamp) bool {
	return l.waitsForRuns(w) || w.id.plural == "cronjobs" && s.at.Sub(w.waited) < readLongBefore
}

// judgeReload judges whether a CronJob was run for a reload. Where the run had to wait, or had an older content, another one must follow.
func (l *runsLaw) judgeReload(w *workload, o *owedRun) {
	l.count("runs judged")
	switch ran := l.runsSince(w, o.before.version) > 0; {
	case !ran && l.hadToWait(w, o.stamp):
		l.count("runs that wait judged")
		l.owed[w.uid] = o
	case !ran:
		l.violate(o.stamp.at, broken{"jobs", w.id.String(), "run/missing"},
			"the program stamped it at %s for a change of %s, but has not run it", l.when(o.stamp.at), o.of)
	case !l.paid(w, o):
		l.owed[w.uid] = o
	}
}
