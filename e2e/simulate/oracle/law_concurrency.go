package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The law "jobs", of the concurrencyPolicy of a CronJob: with Forbid the program waits until no other Job of it is active, with
// Replace it deletes the active Jobs first.

// The policies that forbid two Jobs at the same time.
const (
	forbid  = "Forbid"
	replace = "Replace"
)

// runPause is the longest time between two attempts to run a CronJob whose Jobs are active.
const runPause = 30 * time.Second

func policyOf(cronJob world.Object) string {
	return text(section(cronJob, "spec"), "concurrencyPolicy")
}

// activeRuns returns the Jobs of a CronJob that have neither finished nor are being deleted.
func (o *Oracle) activeRuns(w *workload) []*job {
	var active []*job
	for _, j := range o.sortedJobs() {
		_, owner := controllerOf(j.workload.object)
		if owner == w.uid && !finishedJob(j.workload.object) && !deleting(j.workload.object) {
			active = append(active, j)
		}
	}
	return active
}

// judgeConcurrency judges a Job that the program has made for a CronJob. A Job that was created just before may have come after
// the program has listed them.
func (o *Oracle) judgeConcurrency(w *workload, made *job, c world.Commit) {
	policy := policyOf(w.object)
	if policy != forbid && policy != replace {
		return
	}
	o.count("concurrency of runs judged")
	known := c.Call.Arrived.Add(-readLongBefore)
	for _, other := range o.activeRuns(w) {
		if other != made && other.created.at.Before(known) {
			o.violate(c.At, broken{"jobs", w.id.String(), "run/concurrent"}, "its concurrencyPolicy is %s, but the program ran it at %s while %s of %s was active",
				policy, o.when(c.At), other.workload.id, o.when(other.created.at))
		}
	}
}

// replacedRun returns what is wrong with the deletion of a Job that has a controller; empty for a Job that a run replaces.
func (o *Oracle) replacedRun(j *job, c world.Commit) string {
	kind, owner := controllerOf(j.workload.object)
	w := o.byUID[owner]
	if kind != "CronJob" || w == nil {
		return "controlled"
	}
	if finishedJob(j.workload.object) && c.Call.Arrived.Sub(o.finishedAt(j)) >= readLongBefore {
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
	if s := w.last(); s != nil && w.keyChanged <= s.version && !w.uncertain(s) && !o.runsChangedSince(w, s) {
		return "no-cause"
	}
	o.count("Jobs replaced by a run")
	return ""
}

// finishedAt returns when a Job has finished.
func (o *Oracle) finishedAt(j *job) time.Time {
	at, err := time.Parse(time.RFC3339, text(section(j.workload.object, "status"), "completionTime"))
	if err != nil {
		return o.clockNow()
	}
	return at
}

// runsChangedSince reports whether something that runs a CronJob has changed since a stamp.
func (o *Oracle) runsChangedSince(w *workload, s *stamp) bool {
	from := o.ranBefore(w, s)
	for r := range o.atOnce(w) {
		if len(o.contents.of(w.id.namespace, r).within(from, o.version)) > 0 {
			return true
		}
	}
	return false
}

// waitsForRuns reports whether the reload of a workload has to wait until a Job has finished.
func (o *Oracle) waitsForRuns(w *workload) bool {
	return w.id.plural == "cronjobs" && policyOf(w.object) == forbid && !suspended(w.object) && len(o.atOnce(w)) > 0 && len(o.activeRuns(w)) > 0
}

// waitingRuns reports whether a reload of any CronJob waits: the program then looks for its Jobs from time to time.
func (o *Oracle) waitingRuns() bool {
	return slices.ContainsFunc(o.all, func(w *workload) bool { return !w.gone && w.eligible && o.waitsForRuns(w) })
}

// heldJobs reports whether a finalizer holds a Job that the program has deleted, and will create again.
func (o *Oracle) heldJobs() bool {
	for _, j := range o.jobs.present {
		if j.deleted && deleting(j.workload.object) {
			return true
		}
	}
	return false
}
