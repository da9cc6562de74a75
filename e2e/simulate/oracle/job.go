package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Jobs are no workloads of the roster: their template never changes. The program deletes one whose configuration changed and
// creates it again, from a manifest that is in a Secret meanwhile. A CronJob is run: the program creates a Job that it controls.

const (
	jobsResource = "jobs"
	// manifestName is in the names of the Secrets with manifests; the UID of the Job that is deleted follows.
	manifestName = "-job-"
	// replacesAnnotation has the UID of the Job that another one replaces, below the prefix.
	replacesAnnotation = "recreated-from"
	// runAnnotation is on the Jobs of a CronJob that are not scheduled.
	runAnnotation = "cronjob.kubernetes.io/instantiate"
)

// job is what is known of one Job.
type job struct {
	// workload has what the Job tracks; it is in no list of the oracle.
	workload *workload
	created  versionTime
	// since is the version from which on it may have been read what the pods of the Job were started with.
	since int64
	// finished is the version at which it was complete or had failed; 0 while it runs.
	finished int64
	// suspended and resumed are when its suspension has begun and ended last.
	suspended, resumed time.Time
	// chain is how often Jobs of this name were created again since a user created one, whose request arrived at version first.
	chain int
	first int64
	// deleted means that the program has deleted it, adopted that the program has recorded what it found.
	deleted, adopted bool
	acted            time.Time
	reported         bool
}

// jobLog has the Jobs that exist.
type jobLog struct {
	*configLog

	jobs map[id]*job
	// everJob has all that ever did, by uid.
	everJob map[string]*job
}

func newJobLog(config *configLog) *jobLog {
	return &jobLog{configLog: config, jobs: map[id]*job{}, everJob: map[string]*job{}}
}

// sortedJobs returns the Jobs that exist, by name.
func (l *jobLog) sortedJobs() []*job {
	names := slices.SortedFunc(maps.Keys(l.jobs), func(a, b id) int { return strings.Compare(a.String(), b.String()) })
	all := make([]*job, 0, len(names))
	for _, name := range names {
		all = append(all, l.jobs[name])
	}
	return all
}

// commitJob records a stored change of a Job.
func (l *jobLog) commitJob(c world.Commit) {
	key := idOf(c.Key)
	program := l.isProgram(c.Call)
	j := l.jobs[key]
	if c.Restored > 0 && c.New != nil && l.everJob[uidOf(c.New)] != nil {
		l.rewindJob(l.everJob[uidOf(c.New)], c)
		return
	}
	switch {
	case c.New == nil:
		if j != nil {
			l.removeJob(j, program)
		}
	case j == nil || j.workload.uid != uidOf(c.New):
		l.createJob(key, c)
	default:
		l.changeJob(j, c, program)
	}
}

// createJob records a new Job.
func (l *jobLog) createJob(key id, c world.Commit) {
	j := &job{
		workload: &workload{id: key, uid: uidOf(c.New), object: c.New, tracked: map[ref]int64{}, dropped: map[ref]lapse{}},
		created:  versionTime{c.At, c.Version}, since: c.Version, acted: c.At, suspended: c.At,
	}
	if c.Call != nil {
		j.since = c.Call.ArrivedVersion
	}
	j.first = j.since
	j.finish(c)
	j.workload.readNeeds()
	// What is selected now and deleted later is tracked by the record.
	j.workload.triggers, _ = l.other(j.workload, c.New)
	j.workload.refs = slices.Collect(maps.Keys(j.workload.triggers))
	l.jobs[key], l.everJob[j.workload.uid] = j, j
}

// changeJob records a change, and of the begin of a deletion.
func (l *jobLog) changeJob(j *job, c world.Commit, program bool) {
	w := j.workload
	j.deleted = j.deleted || program && beginsDeletion(c)
	record := l.options.Prefix + "config-record"
	if program && world.Text(world.Annotations(c.Old), record) != world.Text(world.Annotations(c.New), record) {
		j.adopted = true
	}
	if !program && c.Call != nil {
		j.acted = c.At
	}
	switch {
	case suspended(c.New) && !suspended(c.Old):
		j.suspended = c.At
	case suspended(c.Old) && !suspended(c.New):
		j.resumed = c.At
	}
	j.finish(c)
	w.object = c.New
}

// beginsDeletion reports whether a change begins the deletion of an object that a finalizer holds.
func beginsDeletion(c world.Commit) bool { return deleting(c.New) && !deleting(c.Old) }

// finish notes when a Job is complete or has failed.
func (j *job) finish(c world.Commit) {
	if j.finished == 0 && world.Finished(c.New) {
		j.finished = c.Version
	}
}

// removeJob records a Job that is gone.
func (l *jobLog) removeJob(j *job, program bool) {
	delete(l.jobs, j.workload.id)
	j.deleted = j.deleted || program
}

// controllerKind returns the kind of the controller of a workload.
func controllerKind(w *workload) string {
	kind, _ := controllerOf(w.object)
	return kind
}

func suspended(object world.Object) bool { return world.Section(object, "spec")["suspend"] == true }

// activeRuns returns the Jobs of a CronJob that have not finished. One that is being deleted counts until it is gone, but is not replaced.
func (l *jobLog) activeRuns(w *workload) []*job {
	var active []*job
	for _, j := range l.sortedJobs() {
		_, owner := controllerOf(j.workload.object)
		if owner == w.uid && !world.Finished(j.workload.object) && (policyOf(w.object) != replace || !deleting(j.workload.object)) {
			active = append(active, j)
		}
	}
	return active
}

// finishedAt returns when a Job has finished.
func (l *jobLog) finishedAt(j *job) time.Time {
	at, err := time.Parse(time.RFC3339, world.Text(world.Section(j.workload.object, "status"), "completionTime"))
	if err != nil {
		return l.clockNow()
	}
	return at
}

// waitsForRuns reports whether a run of a CronJob has to wait until a Job has finished.
func (l *jobLog) waitsForRuns(w *workload) bool {
	return w.id.plural == "cronjobs" && policyOf(w.object) == forbid && !suspended(w.object) &&
		len(l.atOnce(w)) > 0 && len(l.activeRuns(w)) > 0
}

// heldJobs reports whether a finalizer holds a Job that the program has deleted, and will create again.
func (l *jobLog) heldJobs() bool {
	for _, j := range l.jobs {
		if j.deleted && deleting(j.workload.object) {
			return true
		}
	}
	return false
}

// atOnce returns what runs a CronJob.
func (l *jobLog) atOnce(w *workload) map[ref]triggers {
	tracked, _ := l.other(w, w.object)
	return tracked
}

// editsAtOnce counts edits that run a CronJob, or create a Job again. The deletion of an object alone does not where the second dialect does
// not let it count, whatever the lists of the first one say. One that may have come before a version, as that of a stamp, was perhaps seen with
// other changes.
func (l *ledger) editsAtOnce(edits []edit, by triggers, version int64) int {
	counts := by.deleted || l.policy.triggers > 0
	if len(edits) == 1 && edits[0].content == absent && edits[0].version > version && !counts {
		return 0
	}
	return len(edits)
}
