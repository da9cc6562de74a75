package cronrun

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Job is what matters of a Job to the runs of a CronJob: a namespace may have thousands of them.
type Job struct {
	ActiveJob

	owners []string
	// hash is that of its pod template; empty for none.
	hash            string
	created         time.Time
	deleting, ended bool
}

// ActiveJob is a Job that has not finished.
type ActiveJob struct {
	Name string
	UID  types.UID
}

// String returns the name, for messages.
func (j ActiveJob) String() string { return j.Name }

// JobOf reads a raw Job whose pod template may have a hash under an annotation.
func JobOf(raw unstructured.Unstructured, hashAnnotation string) Job {
	job := Job{
		ActiveJob: ActiveJob{raw.GetName(), raw.GetUID()}, created: raw.GetCreationTimestamp().Time, deleting: raw.GetDeletionTimestamp() != nil,
		ended: workload.Object{Kind: workload.Job(), Raw: raw.Object}.Ended(),
	}
	if hash, _, _ := unstructured.NestedString(raw.Object, "spec", "template", "metadata", "annotations", hashAnnotation); len(hash) <= longestKept {
		job.hash = strings.Clone(hash)
	}
	for _, owner := range raw.GetOwnerReferences() {
		if len(owner.UID) <= longestKept {
			job.owners = append(job.owners, strings.Clone(string(owner.UID)))
		}
	}
	return job
}

// longestKept is the most bytes that are kept of a hash and of a UID, both of which a user may write. Ours, and those of Kubernetes, are shorter.
const longestKept = 256

// IsOwned reports whether the Job belongs to another object, such as a CronJob.
func (j Job) IsOwned() bool { return len(j.owners) > 0 }

// Owns reports whether a Job belongs to the CronJob.
func (c CronJob) Owns(job Job) bool { return slices.Contains(job.owners, c.UID()) }

// Others are those Jobs of a CronJob that matter to a run of it.
type Others struct {
	// Made says that the Job of the run exists, whatever has become of it.
	Made bool
	// Started is one that was created from the stamped pod template since the last reload; empty for none.
	Started string
	// Waited says that one has been active since before the last reload, and has another pod template. With Forbid, no run with the stamped one
	// has been made.
	Waited bool
	Active []ActiveJob
}

// Others returns what matters to a run of the CronJob among the Jobs of its namespace. The Job of the run has one of some names.
func (c CronJob) Others(view stamp.View, jobs []Job, names ...string) (found Others) {
	hash := view.Managed[stamp.Hash]
	last, err := record.ParseLastReload(view.Managed[stamp.LastReload])
	explained, second := err == nil && last.BelongsTo(hash), last.Time.Truncate(time.Second)
	for _, job := range jobs {
		if !c.Owns(job) {
			continue
		}
		active := c.isActive(job)
		if active {
			found.Active = append(found.Active, job.ActiveJob)
		}
		found.Made = found.Made || slices.Contains(names, job.Name)
		if !explained {
			continue
		}
		switch stamped, before := job.hash == hash, job.created.Before(second); {
		case stamped && !before:
			found.Started = cmp.Or(found.Started, job.Name)
		case !stamped && before && active:
			found.Waited = true
		}
	}
	return found
}

// ProveWait reports whether the run for the last reload has not been made, since it has had to wait for a Job that is still active.
func (o Others) ProveWait() bool { return o.Waited && !o.Made }

// isActive reports whether a Job has not ended. The controller of CronJobs counts one as active until no pod of it is left, also while it is
// being deleted. Only with Replace such a Job does not count: it would be deleted again.
func (c CronJob) isActive(job Job) bool {
	return !job.ended && (!job.deleting || c.policy() != "Replace")
}

// MayWait reports whether a run for a reload at a time may still have to wait for other Jobs. Where the schedule has started a Job since,
// that has the configuration of the reload. The status names no active Job that the controller of CronJobs has not created.
func (c CronJob) MayWait(since time.Time) bool {
	text, _, _ := unstructured.NestedString(c.Raw, "status", "lastScheduleTime")
	scheduled, _ := time.Parse(time.RFC3339, text)
	return c.policy() == "Forbid" && !c.suspended() && !scheduled.After(since)
}

// MayWaitForLast reports whether a run for the last reload of the CronJob may have to wait for other Jobs.
func (c CronJob) MayWaitForLast(view stamp.View) bool {
	last, ok := LastReload(view, c.Created())
	return ok && IsDue(c.Kind, view.Intent, ChangesOfReload(last)) && c.MayWait(last.Time)
}

// WaitsFor returns the active Jobs that the run for the last reload of the CronJob waits for, as far as what is stored proves that. It is what
// a new leader finds.
func (c CronJob) WaitsFor(view stamp.View, jobs []Job) []ActiveJob {
	if !c.MayWaitForLast(view) {
		return nil
	}
	others := c.Others(view, jobs, c.JobNames(view, Recorded(view).Content)...)
	if others.Started != "" || !others.ProveWait() {
		return nil
	}
	return others.Active
}
