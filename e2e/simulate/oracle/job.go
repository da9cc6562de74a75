package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Jobs are no workloads of [Oracle.workloads]: their template never changes. The program deletes one whose configuration changed and
// creates it again, from a manifest that is in a Secret meanwhile. A CronJob is run: the program creates a Job that it controls.

const (
	jobsResource = "jobs"
	// manifestName is in the names of the Secrets with manifests; the UID of the Job that is deleted follows.
	manifestName = "-job-"
	// replacesMark has the UID of the Job that another one replaces, below the prefix.
	replacesMark = "recreated-from"
	// runMark is on the Jobs of a CronJob that are not scheduled.
	runMark = "cronjob.kubernetes.io/instantiate"
)

// job is what is known of one Job.
type job struct {
	// workload has what the Job tracks; it is in no list of the oracle.
	workload *workload
	created  moment
	// since is the version from which on it may have been read what the pods of the Job were started with.
	since int64
	// finished is the version at which it was complete or had failed; 0 while it runs.
	finished int64
	// chain is how often Jobs of this name were created again since a user created one, whose request arrived at version first.
	chain int
	first int64
	// deleted means that the program has deleted it, adopted that the program has recorded what it found.
	deleted, adopted bool
	acted            time.Time
	reported         bool
}

// lostJob is a Job that is to be created again.
type lostJob struct {
	job *job
	at  time.Time
	// owed means that the program has deleted it; else a user has, while its manifest was stored.
	owed, restored bool
}

// jobs has what is known of all Jobs.
type jobs struct {
	present map[id]*job
	// lost has those that were deleted, manifests the versions at which a manifest was stored; both by the UID of the Job.
	lost       map[string]*lostJob
	manifests  map[string]moment
	keyChanged int64
	// recreated counts the Jobs that were created again.
	recreated int
	// runs has the Jobs that the program made for a CronJob, by its UID.
	runs map[string][]run
}

// run is a Job that the program made for a CronJob, with the content of a version or a later one.
type run struct {
	moment

	content int64
}

func newJobs() jobs {
	return jobs{present: map[id]*job{}, lost: map[string]*lostJob{}, manifests: map[string]moment{}, runs: map[string][]run{}}
}

// sortedJobs returns the Jobs that exist, by name.
func (o *Oracle) sortedJobs() []*job {
	names := slices.SortedFunc(maps.Keys(o.jobs.present), func(a, b id) int { return strings.Compare(a.String(), b.String()) })
	all := make([]*job, 0, len(names))
	for _, name := range names {
		all = append(all, o.jobs.present[name])
	}
	return all
}

// commitJob takes note of a stored change of a Job.
func (o *Oracle) commitJob(c world.Commit) {
	key := idOf(c.Key)
	program := c.Call != nil && o.options.Program(c.Call.Client)
	j := o.jobs.present[key]
	switch {
	case c.New == nil:
		if j != nil {
			o.removeJob(j, c, program)
		}
	case j == nil || j.workload.uid != uidOf(c.New):
		o.createJob(key, c, program)
	default:
		o.changeJob(j, c, program)
	}
}

// createJob takes note of a new Job.
func (o *Oracle) createJob(key id, c world.Commit, program bool) {
	j := &job{
		workload: &workload{id: key, uid: uidOf(c.New), object: c.New, tracked: map[ref]int64{}, dropped: map[ref]lapse{}},
		created:  moment{c.At, c.Version}, since: c.Version, acted: c.At,
	}
	if c.Call != nil {
		j.since = c.Call.ArrivedVersion
	}
	j.first = j.since
	j.finish(c)
	o.readNeeds(j.workload)
	o.jobs.present[key] = j
	if program {
		o.judgeCreatedJob(j, c)
		return
	}
	for _, lost := range o.jobs.lost {
		if lost.job.workload.id == key {
			lost.owed = false // a user's Job of the name is kept, also if it is deleted later
		}
	}
}

// changeJob takes note of a change, and of the begin of a deletion.
func (o *Oracle) changeJob(j *job, c world.Commit, program bool) {
	w := j.workload
	begins := deleting(c.New) && !deleting(c.Old)
	if program && begins {
		o.judgeDeletedJob(j, c)
		j.deleted = true
	}
	record := o.options.Prefix + "config-record"
	if program && text(annotationsOf(c.Old), record) != text(annotationsOf(c.New), record) {
		j.adopted = true
	}
	if !program && c.Call != nil {
		j.acted = c.At
	}
	j.finish(c)
	w.object = c.New
}

// finish notes when a Job is complete or has failed.
func (j *job) finish(c world.Commit) {
	if j.finished == 0 && finishedJob(c.New) {
		j.finished = c.Version
	}
}

// removeJob takes note of a Job that is gone.
func (o *Oracle) removeJob(j *job, c world.Commit, program bool) {
	w := j.workload
	delete(o.jobs.present, w.id)
	if program && !j.deleted {
		o.judgeDeletedJob(j, c)
		j.deleted = true
	}
	_, stored := o.jobs.manifests[w.uid]
	if j.deleted && o.controllerOf(w) == "" || stored {
		o.jobs.lost[w.uid] = &lostJob{job: j, at: c.At, owed: j.deleted}
	}
	if j.deleted {
		o.judgeLostJob(o.jobs.lost[w.uid], c.At)
	}
}

func (o *Oracle) controllerOf(w *workload) string {
	kind, _ := controllerOf(w.object)
	return kind
}

// commitManifest takes note of a Secret with the manifest of a Job; false if it is another Secret.
func (o *Oracle) commitManifest(c world.Commit) bool {
	uid, is := o.manifestOf(c.Key)
	switch {
	case !is:
		return false
	case c.New != nil:
		if _, there := o.jobs.manifests[uid]; !there {
			o.jobs.manifests[uid] = moment{c.At, c.Version}
		}
	default:
		delete(o.jobs.manifests, uid)
		if lost := o.jobs.lost[uid]; lost != nil {
			o.judgeLostJob(lost, c.At)
		}
	}
	return true
}

// manifestOf returns the UID of the Job whose manifest a Secret has; false if it has none.
func (o *Oracle) manifestOf(key world.Key) (uid string, is bool) {
	if key.Resource.Plural != secretList || key.Namespace != o.options.KeySecret.Namespace {
		return "", false
	}
	_, uid, is = strings.Cut(key.Name, manifestName)
	return uid, is
}

// finishedJob reports whether a Job is complete or has failed.
func finishedJob(object world.Object) bool {
	return slices.ContainsFunc(items(section(object, "status"), "conditions"), func(item any) bool {
		condition, _ := item.(map[string]any)
		return text(condition, "status") == "True" && (text(condition, "type") == "Complete" || text(condition, "type") == "Failed")
	})
}

func suspended(object world.Object) bool { return section(object, "spec")["suspend"] == true }
