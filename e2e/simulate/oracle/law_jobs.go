package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The law "jobs": no Job is lost, each is created again once for a change, and a CronJob is run once for it.

// judgeDeletedJob judges a deletion by the program. A Job that finishes between a change and the reload is created again.
func (o *Oracle) judgeDeletedJob(j *job, c world.Commit) {
	o.count("deletions of Jobs judged")
	if how := o.wronglyDeleted(j, c); how != "" {
		o.violate(c.At, broken{"jobs", j.workload.id.String(), "deleted/" + how}, "the program deleted the Job of %s at %s (%s)", o.when(j.created.at), o.when(c.At), how)
	}
}

// wronglyDeleted returns why a Job must not be deleted; empty if it may.
func (o *Oracle) wronglyDeleted(j *job, c world.Commit) string {
	w := j.workload
	switch {
	case o.controllerOf(w) != "":
		return o.replacedRun(j, c)
	case o.ignoresJobs(c.At):
		return "ignored"
	case finishedJob(w.object) && !o.options.RerunFinished && o.editsOf(j, j.since, o.mayHaveFinished(j)) == 0:
		return "finished"
	case suspended(w.object) && !finishedJob(w.object):
		return "suspended"
	case len(o.tracks(j)) == 0 && c.At.Sub(j.acted) > notice:
		return "not-asked"
	case o.jobs.keyChanged <= j.created.version && o.editsOf(j, j.since, c.Version) == 0:
		return "no-cause"
	}
	return ""
}

// mayHaveFinished returns the last version at which a Job may have finished as far as the program can know: each watch delivers in
// order, but what watches of two resources have held back comes in any order; so does all that a replica finds that was frozen.
func (o *Oracle) mayHaveFinished(j *job) int64 {
	at := o.finishedAt(j)
	for _, s := range o.faults.spans {
		if (s.kind == "watch-held" || s.kind == "frozen") && !s.from.After(at.Add(notice)) && (s.open || !s.to.Before(at)) {
			return o.version
		}
	}
	return j.finished
}

// ignoresJobs reports whether the flags of all replicas take Jobs away.
func (o *Oracle) ignoresJobs(now time.Time) bool {
	return !o.scope.serves(jobsResource) && o.scope.flags.Clear && now.Sub(o.scope.changed) > notice
}

// editsOf counts the changes of content, within a range of versions, of all that a Job mentions.
func (o *Oracle) editsOf(j *job, from, to int64) int {
	refs := o.tracks(j)
	for r := range j.workload.needs {
		refs[r] = triggers{}
	}
	n := 0
	for r := range refs {
		n += len(o.contents.of(j.workload.id.namespace, r).within(from, to))
	}
	return n
}

// tracks returns what restarts a Job: what it asks for in the second dialect.
func (o *Oracle) tracks(j *job) map[ref]triggers {
	tracked, _ := o.other(j.workload, j.workload.object)
	if tracked == nil {
		return map[ref]triggers{}
	}
	return tracked
}

// judgeCreatedJob judges a Job that the program has created: one that is created again, or a run of a CronJob.
func (o *Oracle) judgeCreatedJob(j *job, c world.Commit) {
	annotations := annotationsOf(c.New)
	uid := text(annotations, o.options.Prefix+replacesMark)
	if uid == "" || text(annotations, runMark) == "manual" {
		o.judgeRun(j, c)
		return
	}
	o.jobs.recreated++
	o.count("Jobs created again")
	subject := j.workload.id.String()
	lost := o.jobs.lost[uid]
	if lost == nil || lost.restored {
		how := "created/doubled"
		if lost == nil {
			how = "created/revived"
		}
		o.violate(c.At, broken{"jobs", subject, how}, "the program created it at %s in place of the Job %s, which is not to be created", o.when(c.At), uid)
		return
	}
	lost.restored = true
	old := lost.job
	j.chain, j.first = old.chain+1, old.first
	if o.webhookStamped(c) {
		j.since = c.Call.ArrivedVersion
	} else {
		j.since = min(j.since, o.versionAt(o.jobs.manifests[uid].at.Add(-readLongBefore)))
	}
	if edits := o.editsOf(j, j.first, c.Version); j.chain > max(edits, 1) && o.jobs.keyChanged <= j.first {
		o.violate(c.At, broken{"jobs", subject, "created/twice"}, "the program created it %d times, the last time at %s, for %d changes", j.chain, o.when(c.At), edits)
	}
	if !o.sameJob(old.workload.object, c.New) {
		o.violate(c.At, broken{"jobs", subject, "created/other"}, "the Job that was created again at %s is not the one that was deleted", o.when(c.At))
	}
}

// webhookStamped reports whether the webhook gave a new Job other marks than the request has.
func (o *Oracle) webhookStamped(c world.Commit) bool {
	path := []string{"spec", "template"}
	return c.Sent != nil && marksIn(section(c.Sent, path...), o.options.Prefix) != marksIn(section(c.New, path...), o.options.Prefix)
}

// sameJob compares two Jobs without what the program, other webhooks and the API server write.
func (o *Oracle) sameJob(old, now world.Object) bool {
	old, now = o.options.Foreign(old), o.options.Foreign(now)
	generated := func(name string) bool {
		return strings.HasSuffix(name, "controller-uid") || strings.HasSuffix(name, "job-name") || isControllerLabel(name)
	}
	ours := func(name string) bool {
		return isMark(name, o.options.Prefix) || strings.HasPrefix(name, "batch.kubernetes.io/")
	}
	path := []string{"spec", "template"}
	a, b := section(old, path...), section(now, path...)
	return sameWithout(annotationsOf(old), annotationsOf(now), ours) && sameWithout(labelsOf(old), labelsOf(now), generated) &&
		sameWithout(annotationsOf(a), annotationsOf(b), ours) && sameWithout(labelsOf(a), labelsOf(b), generated) && equal(a["spec"], b["spec"]) &&
		sameWithout(section(old, "spec"), section(now, "spec"), func(name string) bool { return name == "template" || name == "selector" })
}

// judgeLostJob looks for a Job that neither exists nor has a manifest.
func (o *Oracle) judgeLostJob(lost *lostJob, now time.Time) {
	if lost == nil || lost.restored || !lost.owed || o.jobGone(lost) {
		return
	}
	w := lost.job.workload
	if _, stored := o.jobs.manifests[w.uid]; !stored {
		o.violate(now, broken{"jobs", w.id.String(), "lost"}, "the program deleted it at %s, and at %s neither it nor its manifest exists", o.when(lost.at), o.when(now))
	}
}

// jobGone reports whether a deleted Job need not be created again: there is another one, or its namespace is deleted.
func (o *Oracle) jobGone(lost *lostJob) bool {
	w := lost.job.workload
	namespace := o.namespaces[w.id.namespace]
	return o.jobs.present[w.id] != nil || namespace == nil || namespace.ending
}

// judgeRun judges a Job that the program has made for a CronJob.
func (o *Oracle) judgeRun(j *job, c world.Commit) {
	kind, owner := controllerOf(c.New)
	w := o.byUID[owner]
	if kind != "CronJob" || w == nil {
		o.violate(c.At, broken{"jobs", j.workload.id.String(), "created/unknown"}, "the program created it at %s, neither in place of another one nor for a CronJob", o.when(c.At))
		return
	}
	o.count("runs of CronJobs")
	o.jobs.runs[owner] = append(o.jobs.runs[owner], run{moment{c.At, c.Version}, o.versionAt(o.readForRun(w, c.Call))})
	s := w.last()
	if s == nil || c.At.Sub(w.acts[2]) < notice {
		return
	}
	o.judgeConcurrency(w, j, c)
	if w.lostKeySince(s) {
		return
	}
	edits, runs, from := 0, o.runsSince(w, s.arrived), o.ranBefore(w, s)
	for _, run := range o.jobs.runs[owner] {
		if run.version > s.arrived {
			from = min(from, run.content) // a release may have stamped its change meanwhile
		}
	}
	for r := range o.atOnce(w) {
		edits += len(o.contents.of(w.id.namespace, r).within(from, c.Version))
	}
	switch {
	case suspended(w.object):
		o.violate(c.At, broken{"jobs", w.id.String(), "run/suspended"}, "it is suspended, but the program ran it at %s", o.when(c.At))
	case runs > edits && !w.uncertain(s):
		o.violate(c.At, broken{"jobs", w.id.String(), "run/twice"}, "the program ran it %d times since %s, the last time at %s, for %d changes",
			runs, o.when(s.at), o.when(c.At), edits)
	}
}

// readForRun returns when the program has read, at the earliest, the content that it makes a Job of a CronJob for: that is just before,
// unless the process was frozen, or its requests were slow, between the two.
func (o *Oracle) readForRun(w *workload, create *world.Call) time.Time {
	at := create.Arrived.Add(-justNow)
	if o.slow.during(w.id.namespace, at, create.Arrived) {
		at = create.Arrived.Add(-readLongBefore)
	}
	for _, s := range slices.Backward(o.faults.spans) {
		before := s.from.Add(-justNow)
		if s.kind == "frozen" && isProcessOf(create.Client, s.scope) && (s.open || s.to.After(at)) && before.Before(at) {
			at = before
		}
	}
	return at
}

// atOnce returns what runs a CronJob.
func (o *Oracle) atOnce(w *workload) map[ref]triggers {
	tracked, _ := o.other(w, w.object)
	return tracked
}

// ranBefore returns the version with whose content a CronJob was run for a stamp: under constant change that is with an older content than the
// one that is stamped. Where it was not run, the stamp counts.
func (o *Oracle) ranBefore(w *workload, s *stamp) int64 {
	for _, run := range slices.Backward(o.jobs.runs[w.uid]) {
		before := w.stampAt(s.version - 1)
		if run.version <= s.arrived && before != nil && run.version > before.version {
			return run.content
		}
	}
	return s.arrived
}

// runsSince counts the runs after a version.
func (o *Oracle) runsSince(w *workload, version int64) int {
	n := 0
	for _, run := range o.jobs.runs[w.uid] {
		if run.version > version {
			n++
		}
	}
	return n
}

// judgeRunMissing looks whether a CronJob was run before its reload was stored.
func (o *Oracle) judgeRunMissing(w *workload, before, s *stamp) {
	if w.id.plural != "cronjobs" || !s.program || s.marks == before.marks || suspended(w.object) || s.at.Sub(w.acts[2]) < notice ||
		!o.healthy(w, s.arrivedAt) || w.unclearSince(before) || w.keyChanged > before.version {
		return
	}
	for r := range o.atOnce(w) {
		if _, modified, _ := o.changed(w, before, s, r); !modified {
			continue
		}
		o.count("runs judged")
		if o.runsSince(w, before.version) == 0 {
			o.violate(s.at, broken{"jobs", w.id.String(), "run/missing"}, "the program stamped it at %s for a change of %s, but has not run it", o.when(s.at), r)
		}
		return
	}
}

// jobSlack is how much longer than a rollout it may take until a Job is created again: that is several writes and a retry.
const jobSlack = 30 * time.Second

// judgeJobs judges what time alone brings.
func (o *Oracle) judgeJobs(now time.Time) {
	gates := o.slowest()
	bound := max(gates.settle, gates.settleMax) + gates.refractory + o.options.Slack + jobSlack
	for _, j := range o.sortedJobs() {
		since, r := o.dueJob(j)
		calm, known := o.calmSince(j.workload)
		if j.reported || since.IsZero() || !known || now.Sub(later(later(since, j.acted), calm)) <= bound {
			continue
		}
		j.reported = true
		o.violate(now, broken{"prompt", j.workload.id.String(), "job"}, "%s changed at %s, but the Job of %s is still there", r, o.when(since), o.when(j.created.at))
	}
}

// dueJob returns since when a Job has to be created again, and because of what; the zero time if that is not so for sure.
func (o *Oracle) dueJob(j *job) (time.Time, ref) {
	w := j.workload
	stamped := text(annotationsOf(section(w.object, "spec", "template")), o.options.Prefix+requestMark) != ""
	if o.leavesJob(w) || !stamped || j.adopted || o.jobs.keyChanged > j.created.version {
		return time.Time{}, ref{}
	}
	for r := range o.tracks(j) {
		h := o.contents.of(w.id.namespace, r)
		read := believed{}
		read.addPeriod(h, &period{from: j.since, to: j.created.version}, o.version)
		if was, alone := read.only(); alone && was != absent && h.now() != absent && h.now() != was {
			return h.edits[len(h.edits)-1].at, r
		}
	}
	return time.Time{}, ref{}
}

// leavesJob reports whether the program leaves a Job alone, or may.
func (o *Oracle) leavesJob(w *workload) bool {
	labels := labelsOf(w.object)
	excluded := text(labels, o.options.Prefix+ignoredLabel) == "true" || text(labels, o.options.Prefix+disabledLabel) == "true"
	done := suspended(w.object) || finishedJob(w.object) && !o.options.RerunFinished
	return excluded || done || deleting(w.object) || o.controllerOf(w) != "" || o.scope.unclear(jobsResource) || !o.scopeOf(w.object, w)
}

// judgeJobsAtQuiet looks for Jobs that were not created again, and for manifests that are left.
func (o *Oracle) judgeJobsAtQuiet(now time.Time) {
	for uid, lost := range o.jobs.lost {
		calm, known := o.calmSince(lost.job.workload)
		if !known || now.Sub(later(calm, lost.at)) < recovery {
			continue
		}
		o.judgeLostJob(lost, now)
		_, stored := o.jobs.manifests[uid]
		if stored && !lost.restored && !o.jobGone(lost) {
			o.violate(now, broken{"jobs", lost.job.workload.id.String(), "not-created"}, "the program deleted it at %s and has not created it again", o.when(lost.at))
		}
	}
	o.judgeManifestsAtQuiet(now)
}

// judgeManifestsAtQuiet looks for manifests of Jobs that exist again.
func (o *Oracle) judgeManifestsAtQuiet(now time.Time) {
	for uid, since := range o.jobs.manifests {
		lost := o.jobs.lost[uid]
		if lost == nil || !lost.restored || now.Sub(since.at) < 2*recovery {
			continue
		}
		if calm, known := o.calmSince(lost.job.workload); known && now.Sub(calm) >= 2*recovery {
			o.violate(now, broken{"jobs", lost.job.workload.id.String(), "manifest-left"}, "it exists again, but the Secret with its manifest of %s is left", o.when(since.at))
		}
	}
}

// owesJobs reports whether a Job is to be created.
func (o *Oracle) owesJobs() bool {
	for _, lost := range o.jobs.lost {
		if lost.owed && !lost.restored && !o.jobGone(lost) {
			return true
		}
	}
	for _, j := range o.jobs.present {
		if since, _ := o.dueJob(j); !since.IsZero() {
			return true
		}
	}
	return false
}
