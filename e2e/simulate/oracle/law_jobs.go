package oracle

import (
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The law "jobs": no Job is lost, each is created again once for a change, and a CronJob is run once for it.

// jobsLaw is the law "jobs" for Jobs that are created again.
type jobsLaw struct {
	*ledger
	passive

	runs *runsLaw
	// lost has the Jobs that were deleted, manifests the versions at which a manifest was stored; both by the UID of the Job.
	lost      map[string]*lostJob
	manifests map[string]versionTime
	// copies are the Secrets with the manifest, by the UID: each of two installations has one.
	copies map[string]map[string]bool
	// recreated counts the Jobs that were created again.
	recreated int
	// leaving is the Job that the present change removes.
	leaving *job
}

func newJobsLaw(l *ledger, runs *runsLaw) *jobsLaw {
	return &jobsLaw{ledger: l, runs: runs, lost: map[string]*lostJob{}, manifests: map[string]versionTime{}, copies: map[string]map[string]bool{}}
}

// storing judges a deletion, which may only begin.
func (l *jobsLaw) storing(c world.Commit) {
	l.leaving = nil
	if c.Key.Resource.Plural != jobsResource {
		return
	}
	j := l.jobs[idOf(c.Key)]
	if j == nil {
		return
	}
	deletes := c.New != nil && j.workload.uid == uidOf(c.New) && beginsDeletion(c)
	if c.New == nil {
		l.leaving, deletes = j, !j.deleted
	}
	if deletes && l.isProgram(c.Call) {
		l.judgeDeletedJob(j, c)
	}
}

// stored judges a Job that was created or is gone, and the manifests of Jobs.
func (l *jobsLaw) stored(c world.Commit) {
	j := l.jobs[idOf(c.Key)]
	switch {
	case c.Restored > 0:
		l.restoreManifest(c)
	case isConfig(c.Key.Resource.Plural):
		l.commitManifest(c)
	case l.leaving != nil:
		l.removed(l.leaving, c)
	case c.Key.Resource.Plural == jobsResource && j != nil && j.created.version == c.Version:
		l.created(j, c)
	}
}

// created judges a new Job of the program. One of a user is kept, also if it is deleted later.
func (l *jobsLaw) created(j *job, c world.Commit) {
	if l.isProgram(c.Call) {
		l.judgeCreatedJob(j, c)
		return
	}
	for _, lost := range l.lost {
		if lost.job.workload.id == j.workload.id {
			lost.owed = false
		}
	}
}

// removed judges whether a Job that is gone is lost.
func (l *jobsLaw) removed(j *job, c world.Commit) {
	w := j.workload
	_, stored := l.manifests[w.uid]
	if j.deleted && controllerKind(w) == "" || stored {
		l.lost[w.uid] = &lostJob{job: j, at: c.At, owed: j.deleted}
	}
	if j.deleted {
		l.judgeLostJob(l.lost[w.uid], c.At)
	}
}

// judgeDeletedJob judges a deletion by the program. A Job that finishes between a change and the reload is created again.
func (l *jobsLaw) judgeDeletedJob(j *job, c world.Commit) {
	l.count("deletions of Jobs judged")
	if how := l.wronglyDeleted(j, c); how != "" {
		l.violate(c.At, broken{"jobs", j.workload.id.String(), "deleted/" + how},
			"the program deleted the Job of %s at %s (%s)", l.when(j.created.at), l.when(c.At), how)
	}
}

// wronglyDeleted returns why a Job must not be deleted; empty if it may.
func (l *jobsLaw) wronglyDeleted(j *job, c world.Commit) string {
	w := j.workload
	switch {
	case controllerKind(w) != "":
		return l.runs.replacedRun(j, c)
	case l.ignoresJobs(c.At):
		return "ignored"
	case world.Finished(w.object) && !l.options.RerunFinished && l.editsOf(j, j.since, l.mayHaveFinished(j)) == 0:
		return "finished"
	case suspended(w.object) && !world.Finished(w.object):
		return "suspended"
	case l.asksForNothing(j, c.At):
		return "not-asked"
	case l.keyVersion <= j.created.version && l.editsOf(j, j.since, c.Version) == 0:
		return "no-cause"
	case l.startedWith(j, c.Version):
		return "resumed"
	}
	return ""
}

// startedWith reports whether a Job was resumed with the configuration of a version, which the program had recorded before for sure.
func (l *jobsLaw) startedWith(j *job, version int64) bool {
	from := j.resumed.Add(-l.bound())
	return j.resumed.After(j.suspended) && from.After(j.suspended) && l.healthy(j.workload, from) && l.keyVersion <= j.created.version &&
		l.editsOf(j, l.versionAt(from), version) == 0
}

// asksForNothing reports whether a Job surely tracks nothing, to all replicas.
func (l *jobsLaw) asksForNothing(j *job, at time.Time) bool {
	return len(l.tracks(j)) == 0 && at.Sub(j.acted) > notice && l.scope.flags.Clear
}

// mayHaveFinished returns the last version at which a Job may have finished as far as the program can know. Each watch delivers in
// order, but what watches of two resources have held back comes in any order. So does all that a replica finds that was frozen.
func (l *jobsLaw) mayHaveFinished(j *job) int64 {
	at := l.finishedAt(j)
	for _, s := range l.faults.spans {
		if (s.kind == "watch-held" || s.kind == "frozen") && !s.from.After(at.Add(notice)) && (s.open || !s.to.Before(at)) {
			return l.version
		}
	}
	return j.finished
}

// ignoresJobs reports whether the flags of all replicas take Jobs away.
func (l *jobsLaw) ignoresJobs(now time.Time) bool {
	return !l.scope.serves(jobsResource) && l.scope.flags.Clear && now.Sub(l.scope.changed) > notice
}

// editsOf counts the changes of content, within a range of versions, of all that a Job mentions.
func (l *jobsLaw) editsOf(j *job, from, to int64) int {
	refs := l.tracks(j)
	for r := range j.workload.needs {
		if _, tracked := refs[r]; !tracked {
			refs[r] = triggers{deleted: true} // what it asked for before is not known
		}
	}
	n := 0
	for r, by := range refs {
		n += l.editsAtOnce(l.contents.of(j.workload.id.namespace, r).within(from, to), by, from)
	}
	return n
}

// tracks returns what restarts a Job: what it asks for in the second dialect.
func (l *jobsLaw) tracks(j *job) map[ref]triggers {
	tracked, _ := l.other(j.workload, j.workload.object)
	if tracked == nil {
		return map[ref]triggers{}
	}
	return tracked
}

// judgeCreatedJob judges a Job that the program has created: one that is created again, or a run of a CronJob.
func (l *jobsLaw) judgeCreatedJob(j *job, c world.Commit) {
	annotations := world.Annotations(c.New)
	uid := world.Text(annotations, l.options.Prefix+replacesAnnotation)
	if uid == "" || world.Text(annotations, runAnnotation) == "manual" {
		l.runs.judge(j, c)
		return
	}
	l.recreated++
	l.count("Jobs created again")
	subject := j.workload.id.String()
	lost := l.lost[uid]
	if lost == nil || lost.restored {
		how := "created/doubled"
		if lost == nil {
			how = "created/revived"
		}
		l.violate(c.At, broken{"jobs", subject, how},
			"the program created it at %s in place of the Job %s, which is not to be created", l.when(c.At), uid)
		return
	}
	lost.restored = true
	old := lost.job
	j.chain, j.first = old.chain+1, old.first
	if l.webhookStamped(c) {
		j.since = c.Call.ArrivedVersion
	} else {
		j.since = min(j.since, l.versionAt(l.manifests[uid].at.Add(-readLongBefore)))
	}
	if edits := l.editsOf(j, j.first, c.Version); j.chain > max(edits, 1) && l.keyVersion <= j.first {
		l.violate(c.At, broken{"jobs", subject, "created/twice"},
			"the program created it %d times, the last time at %s, for %d changes", j.chain, l.when(c.At), edits)
	}
	if !l.sameJob(old.workload.object, c.New) {
		l.violate(c.At, broken{"jobs", subject, "created/other"},
			"the Job that was created again at %s is not the one that was deleted", l.when(c.At))
	}
}

// webhookStamped reports whether the webhook gave a new Job other managed annotations than the request has.
func (l *jobsLaw) webhookStamped(c world.Commit) bool {
	path := []string{"spec", "template"}
	return c.Sent != nil &&
		managedAnnotationsIn(world.Section(c.Sent, path...), l.options.Prefix) !=
			managedAnnotationsIn(world.Section(c.New, path...), l.options.Prefix)
}

// sameJob compares two Jobs without what the program, other webhooks and the API server write.
func (l *jobsLaw) sameJob(old, now world.Object) bool {
	old, now = l.options.Foreign(old), l.options.Foreign(now)
	ours := func(name string) bool {
		return isManagedAnnotation(name, l.options.Prefix) || strings.HasPrefix(name, "batch.kubernetes.io/")
	}
	made := func(name string) bool { return name == "template" || name == "selector" }
	path := []string{"spec", "template"}
	a, b := world.Section(old, path...), world.Section(now, path...)
	return sameWithout(world.Annotations(old), world.Annotations(now), ours) && sameWithout(world.Labels(old), world.Labels(now), isJobLabel) &&
		sameWithout(world.Annotations(a), world.Annotations(b), ours) && sameWithout(world.Labels(a), world.Labels(b), isJobLabel) &&
		equal(a["spec"], b["spec"]) &&
		sameWithout(world.Section(old, "spec"), world.Section(now, "spec"), made)
}

// isJobLabel reports whether the API server adds a label to a Job and to its pods.
func isJobLabel(name string) bool {
	return strings.HasSuffix(name, "controller-uid") || strings.HasSuffix(name, "job-name") || isControllerLabel(name)
}

// judgeLostJob looks for a Job that neither exists nor has a manifest.
func (l *jobsLaw) judgeLostJob(lost *lostJob, now time.Time) {
	if lost == nil || lost.restored || !lost.owed || l.jobGone(lost) {
		return
	}
	w := lost.job.workload
	if _, stored := l.manifests[w.uid]; !stored {
		l.violate(now, broken{"jobs", w.id.String(), "lost"},
			"the program deleted it at %s, and at %s neither it nor its manifest exists", l.when(lost.at), l.when(now))
	}
}

// jobGone reports whether a deleted Job need not be created again: there is another one, or its namespace is deleted.
func (l *jobsLaw) jobGone(lost *lostJob) bool {
	w := lost.job.workload
	namespace := l.namespaces[w.id.namespace]
	return l.jobs[w.id] != nil || namespace == nil || namespace.ending
}

// jobSlack is how much longer than a rollout it may take until a Job is created again: that is several writes and a retry.
const jobSlack = 30 * time.Second

// bound is how long it takes at most.
func (l *jobsLaw) bound() time.Duration {
	gates := l.slowest()
	return max(gates.settle, gates.settleMax) + gates.refractory + l.options.Slack + jobSlack
}

// tick judges what time alone brings.
func (l *jobsLaw) tick(now time.Time) {
	bound := l.bound()
	for _, j := range l.sortedJobs() {
		since, r := l.dueJob(j)
		calm, known := l.calmSince(j.workload)
		if j.reported || since.IsZero() || !known || now.Sub(later(later(since, j.acted), calm)) <= bound {
			continue
		}
		j.reported = true
		l.violate(now, broken{"prompt", j.workload.id.String(), "job"},
			"%s changed at %s, but the Job of %s is still there", r, l.when(since), l.when(j.created.at))
	}
}

// dueJob returns since when a Job has to be created again, and because of what; the zero time if that is not so for sure.
func (l *jobsLaw) dueJob(j *job) (time.Time, ref) {
	w := j.workload
	stamped := world.Text(world.Annotations(world.Section(w.object, "spec", "template")), l.options.Prefix+requestAnnotation) != ""
	if l.leavesJob(w) || !stamped || j.adopted || l.keyVersion > j.created.version {
		return time.Time{}, ref{}
	}
	for r, by := range l.tracks(j) {
		h := l.contents.of(w.id.namespace, r)
		read := believed{}
		read.addPeriod(h, &period{from: j.since, to: j.created.version}, l.version)
		counts := h.now() != absent || by.deleted && !h.touchedWithin(j.since, j.created.version)
		if was, alone := read.only(); alone && was != absent && counts && h.now() != was {
			return h.edits[len(h.edits)-1].at, r
		}
	}
	return time.Time{}, ref{}
}

// leavesJob reports whether the program leaves a Job alone, or may.
func (l *jobsLaw) leavesJob(w *workload) bool {
	labels := world.Labels(w.object)
	excluded := world.Text(labels, l.options.Prefix+ignoredLabel) == "true" || world.Text(labels, l.options.Prefix+disabledLabel) == "true"
	done := suspended(w.object) || world.Finished(w.object) && !l.options.RerunFinished
	return excluded || done || deleting(w.object) || controllerKind(w) != "" || l.scope.unclear(jobsResource) || !l.scopeOf(w.object, w)
}

// quiet looks for Jobs that were not created again, and for manifests that are left.
func (l *jobsLaw) quiet(now time.Time) {
	for uid, lost := range l.lost {
		calm, known := l.calmSince(lost.job.workload)
		if !known || now.Sub(later(calm, lost.at)) < recovery {
			continue
		}
		l.judgeLostJob(lost, now)
		_, stored := l.manifests[uid]
		if stored && !lost.restored && !l.jobGone(lost) {
			l.violate(now, broken{"jobs", lost.job.workload.id.String(), "not-created"},
				"the program deleted it at %s and has not created it again", l.when(lost.at))
		}
	}
	l.judgeManifestsAtQuiet(now)
}

// judgeManifestsAtQuiet looks for manifests of Jobs that exist again.
func (l *jobsLaw) judgeManifestsAtQuiet(now time.Time) {
	for uid, since := range l.manifests {
		lost := l.lost[uid]
		if lost == nil || !lost.restored || now.Sub(since.at) < 2*recovery {
			continue
		}
		if calm, known := l.calmSince(lost.job.workload); known && now.Sub(calm) >= 2*recovery {
			l.violate(now, broken{"jobs", lost.job.workload.id.String(), "manifest-left"},
				"it exists again, but the Secret with its manifest of %s is left", l.when(since.at))
		}
	}
}

// owes reports whether a Job is to be created.
func (l *jobsLaw) owes(time.Time) bool {
	for _, lost := range l.lost {
		if lost.owed && !lost.restored && !l.jobGone(lost) {
			return true
		}
	}
	for _, j := range l.jobs {
		if since, _ := l.dueJob(j); !since.IsZero() {
			return true
		}
	}
	return false
}

// lostJob is a Job that is to be created again.
type lostJob struct {
	job *job
	at  time.Time
	// owed means that the program has deleted it; else a user has, while its manifest was stored.
	owed, restored bool
}

// commitManifest records a Secret with the manifest of a Job.
func (l *jobsLaw) commitManifest(c world.Commit) {
	uid, is := l.manifestOf(c.Key)
	switch {
	case !is:
	case c.New != nil:
		l.storeManifest(uid, c)
	default:
		l.removeManifest(uid, c)
		if lost := l.lost[uid]; lost != nil {
			l.judgeLostJob(lost, c.At)
		}
	}
}

// storeManifest records that a Secret has the manifest of a Job.
func (l *jobsLaw) storeManifest(uid string, c world.Commit) {
	if _, there := l.manifests[uid]; !there {
		l.manifests[uid], l.copies[uid] = versionTime{c.At, c.Version}, map[string]bool{}
	}
	l.copies[uid][c.Key.Name] = true
}

// removeManifest records that a Secret with the manifest of a Job is gone.
func (l *jobsLaw) removeManifest(uid string, c world.Commit) {
	if delete(l.copies[uid], c.Key.Name); len(l.copies[uid]) == 0 {
		delete(l.manifests, uid)
	}
}
