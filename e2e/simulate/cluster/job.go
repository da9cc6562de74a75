package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// syncJob is one pass over a Job: one pod, which completes as soon as it starts.
func (c *Cluster) syncJob(key world.Key, object world.Object) {
	if world.Finished(object) {
		return
	}
	o := ownerOf(key, object)
	running, succeeded := c.jobPods(key, object)
	suspended := truth(object, "spec", "suspend")
	if running+succeeded == 0 && !suspended {
		c.createJobPod(o)
	}
	status := world.Object{}
	for name, value := range world.Section(object, "status") {
		status[name] = value
	}
	if _, started := status["startTime"]; !started && !suspended {
		status["startTime"] = now()
	}
	withCount(status, "active", running)
	withCount(status, "succeeded", succeeded)
	if succeeded > 0 {
		stamp := now()
		status["completionTime"] = stamp
		status["conditions"] = []any{world.Object{
			"type": "Complete", "status": "True", "reason": "CompletionsReached", "lastProbeTime": stamp, "lastTransitionTime": stamp,
		}}
	}
	if !equal(world.Section(object, "status"), status) {
		c.putStatus(key, world.With(object, status, "status"))
	}
}

// jobPods counts the pods of a Job. Those of a suspended one are removed.
func (c *Cluster) jobPods(key world.Key, object world.Object) (running, succeeded int) {
	for _, pod := range c.controlled(uidOf(object), world.Pods) {
		switch {
		case phaseOf(pod) == "Succeeded":
			succeeded++
		case active(pod) && truth(object, "spec", "suspend"):
			c.remove(podKey(key.Namespace, nameOf(pod)))
		case active(pod):
			running++
		}
	}
	return running, succeeded
}

func (c *Cluster) createJobPod(o owner) {
	name := c.freeName(o)
	template := world.Section(o.object, "spec", "template")
	labels := world.Labels(template)
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		labels = plus(plus(labels, prefix+"controller-uid", uidOf(o.object)), prefix+"job-name", o.key.Name)
	}
	pod := newPod(o, template, name, nodeFor(nil))
	c.put(podKey(o.key.Namespace, name), world.With(pod, labels, "metadata", "labels"))
}

// RunCronJob creates the Job that the schedule of a CronJob would create now. It reports false if there is no such CronJob, if it
// is suspended, or if its concurrencyPolicy is Forbid and a Job of it is active; with Replace it deletes such a Job. The Job is named after the minute, as in reality, or after a later one if that minute had its Job.
func (c *Cluster) RunCronJob(key world.Key) (world.Key, bool) {
	object, ok := c.store.Get(key)
	if !ok || deleting(object) || truth(object, "spec", "suspend") {
		return world.Key{}, false
	}
	c.failed = false
	if !c.mayRun(object) {
		return world.Key{}, false
	}
	o := ownerOf(key, object)
	job := world.Key{Resource: world.Jobs, Namespace: key.Namespace}
	for minute := max(int(time.Now().Unix()/60), c.suffixes[key.String()]+1); ; minute++ {
		c.suffixes[key.String()] = minute
		job.Name = key.Name + "-" + strconv.Itoa(minute)
		if _, taken := c.store.Get(job); !taken {
			break
		}
	}
	template := world.Section(object, "spec", "jobTemplate")
	metadata := world.Object{
		"name": job.Name, "namespace": job.Namespace, "ownerReferences": []any{o.reference()},
		"annotations": plus(world.Annotations(template), "batch.kubernetes.io/cronjob-scheduled-timestamp", now()),
	}
	if labels := world.Labels(template); len(labels) > 0 {
		metadata["labels"] = labels
	}
	created := c.put(job, world.Object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": world.Section(template, "spec"),
	})
	if created == nil {
		return world.Key{}, false
	}
	active := append(slices.Clone(items(object, "status", "active")), activeJob(created))
	status := plus(plus(world.Section(object, "status"), "lastScheduleTime", now()), "active", active)
	c.putStatus(key, world.With(object, status, "status"))
	return job, true
}

// activeJob refers to a Job in the status of its CronJob.
func activeJob(job world.Object) world.Object {
	return world.Object{
		"apiVersion": "batch/v1", "kind": "Job", "namespace": world.Text(job, "metadata", "namespace"), "name": nameOf(job), "uid": uidOf(job),
	}
}

// mayRun reports whether the concurrencyPolicy of a CronJob lets another Job run, and deletes what it replaces. The controller
// does not count Jobs that others have created, even if they have it as their controller.
func (c *Cluster) mayRun(object world.Object) bool {
	policy := world.Text(object, "spec", "concurrencyPolicy")
	for _, job := range c.controlled(uidOf(object), world.Jobs) {
		switch {
		case world.Finished(job) || deleting(job) || !isActiveIn(object, job):
		case policy == "Forbid":
			return false
		case policy == "Replace":
			c.remove(world.Key{Resource: world.Jobs, Namespace: world.Text(job, "metadata", "namespace"), Name: nameOf(job)})
		}
	}
	return true
}

func isActiveIn(cronJob, job world.Object) bool {
	return slices.ContainsFunc(items(cronJob, "status", "active"), func(entry any) bool { return equal(entry, activeJob(job)) })
}

// syncCronJob removes Jobs that run no more from the status, and finished ones beyond the history limits.
func (c *Cluster) syncCronJob(key world.Key, object world.Object) {
	var running []any
	var succeeded, failed []world.Object
	last := world.Text(object, "status", "lastSuccessfulTime")
	for _, job := range c.controlled(uidOf(object), world.Jobs) {
		switch {
		case world.IsTrue(job, "Complete"):
			succeeded = append(succeeded, job)
			last = max(last, world.Text(job, "status", "completionTime"))
		case world.Finished(job):
			failed = append(failed, job)
		case isActiveIn(object, job):
			running = append(running, activeJob(job))
		}
	}
	c.removeOldest(succeeded, number(object, 3, "spec", "successfulJobsHistoryLimit"))
	c.removeOldest(failed, number(object, 1, "spec", "failedJobsHistoryLimit"))
	status := plus(world.Section(object, "status"), "active", running)
	if len(running) == 0 {
		delete(status, "active")
	}
	if last != "" {
		status["lastSuccessfulTime"] = last
	}
	if !equal(world.Section(object, "status"), status) {
		c.putStatus(key, world.With(object, status, "status"))
	}
}

func (c *Cluster) removeOldest(jobs []world.Object, limit int) {
	slices.SortStableFunc(jobs, func(a, b world.Object) int {
		return cmp.Or(compareText(world.Text(a, "status", "startTime"), world.Text(b, "status", "startTime")), byName(a, b))
	})
	for _, job := range jobs[:max(len(jobs)-limit, 0)] {
		c.remove(world.Key{Resource: world.Jobs, Namespace: world.Text(job, "metadata", "namespace"), Name: nameOf(job)})
	}
}
