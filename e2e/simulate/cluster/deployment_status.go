package cluster

import (
	"math"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// countStatus writes the counts and the condition Available into the status (calculateStatus).
func (d *deployment) countStatus() {
	all := d.all()
	total, availables := sum(all, wantedPods), sum(all, availablePods)
	d.status["observedGeneration"] = int64(number(d.object, 1, "metadata", "generation"))
	withCount(d.status, "replicas", sum(all, actualPods))
	withCount(d.status, "readyReplicas", sum(all, readyPods))
	withCount(d.status, "availableReplicas", availables)
	withCount(d.status, "unavailableReplicas", max(total-availables, 0))
	updated := 0
	if d.fresh != nil {
		updated = d.fresh.actual
	}
	withCount(d.status, "updatedReplicas", updated)
	if availables >= d.replicas-d.unavailable {
		d.setCondition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		d.setCondition("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
}

// rolloutStatus also judges the progress (progress.go, syncRolloutStatus).
func (d *deployment) rolloutStatus() {
	before := world.Section(d.object, "status")
	current := d.condition("Progressing")
	d.countStatus()
	if !d.hasDeadline() {
		d.dropCondition("Progressing")
		return
	}
	done := number(d.status, 0, "replicas") == number(d.status, 0, "updatedReplicas") && world.Text(current, "reason") == "NewReplicaSetAvailable"
	subject := "Deployment \"" + d.key.Name + "\""
	if d.fresh != nil {
		subject = "ReplicaSet \"" + d.fresh.key.Name + "\""
	}
	switch {
	case done:
	case d.complete(d.status):
		d.setCondition("Progressing", "True", "NewReplicaSetAvailable", subject+" has successfully progressed.")
	case d.progressed(before):
		d.dropCondition("Progressing")
		d.setCondition("Progressing", "True", "ReplicaSetUpdated", subject+" is progressing.")
		if world.Text(current, "status") == "True" {
			d.condition("Progressing")["lastTransitionTime"] = current["lastTransitionTime"]
		}
	case d.timedOut(current):
		d.setCondition("Progressing", "False", "ProgressDeadlineExceeded", subject+" has timed out progressing.")
	}
	d.wakeAtDeadline()
}

// complete reports whether the status is that of a finished rollout (DeploymentComplete).
func (d *deployment) complete(status world.Object) bool {
	return number(status, 0, "updatedReplicas") == d.replicas && number(status, 0, "replicas") == d.replicas &&
		number(status, 0, "availableReplicas") == d.replicas &&
		number(status, 0, "observedGeneration") >= number(d.object, 1, "metadata", "generation")
}

// progressed compares the status with the one before (DeploymentProgressing).
func (d *deployment) progressed(before world.Object) bool {
	count := func(status world.Object, name string) int { return number(status, 0, name) }
	old := func(status world.Object) int { return count(status, "replicas") - count(status, "updatedReplicas") }
	return count(d.status, "updatedReplicas") > count(before, "updatedReplicas") || old(d.status) < old(before) ||
		count(d.status, "readyReplicas") > count(before, "readyReplicas") ||
		count(d.status, "availableReplicas") > count(before, "availableReplicas")
}

func (d *deployment) deadline() int { return number(d.object, 600, "spec", "progressDeadlineSeconds") }

func (d *deployment) hasDeadline() bool { return d.deadline() != math.MaxInt32 }

func (d *deployment) deadlineAfter(progressing world.Object) time.Time {
	return timeOf(world.Text(progressing, "lastUpdateTime")).Add(time.Duration(d.deadline()) * time.Second)
}

func (d *deployment) timedOut(progressing world.Object) bool {
	switch reason := world.Text(progressing, "reason"); {
	case progressing == nil, reason == "NewReplicaSetAvailable":
		return false
	case reason == "ProgressDeadlineExceeded":
		return true
	}
	return d.deadlineAfter(progressing).Before(time.Now())
}

// wakeAtDeadline makes the controller look again when a rollout that does not progress exceeds its deadline.
func (d *deployment) wakeAtDeadline() {
	progressing := d.condition("Progressing")
	d.c.unwake(d.key)
	if progressing == nil || d.complete(d.status) {
		return
	}
	switch world.Text(progressing, "reason") {
	case "ProgressDeadlineExceeded", "NewReplicaSetAvailable":
		return // neither times out (any more)
	}
	d.c.wake(d.key, d.deadlineAfter(progressing).Add(time.Second))
}

// syncPausedCondition says in the condition Progressing that the Deployment was paused or resumed (checkPausedConditions).
func (d *deployment) syncPausedCondition() {
	reason := world.Text(d.condition("Progressing"), "reason")
	switch known := reason == "DeploymentPaused"; {
	case !d.hasDeadline() || reason == "ProgressDeadlineExceeded":
	case d.paused && !known:
		d.setCondition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
	case !d.paused && known:
		d.setCondition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
	}
}

func (d *deployment) condition(kind string) world.Object {
	return world.Condition(world.Object{"status": d.status}, kind)
}

func (d *deployment) dropCondition(kind string) {
	kept := slices.DeleteFunc(slices.Clone(items(d.status, "conditions")), func(entry any) bool {
		found, ok := entry.(map[string]any)
		return ok && found["type"] == kind
	})
	d.status["conditions"] = kept
	if len(kept) == 0 {
		delete(d.status, "conditions")
	}
}

// setCondition changes nothing if status and reason are the same.
func (d *deployment) setCondition(kind, status, reason, message string) {
	current := d.condition(kind)
	if current != nil && current["status"] == status && current["reason"] == reason {
		return
	}
	stamp := now()
	made := world.Object{
		"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": stamp, "lastTransitionTime": stamp,
	}
	if current != nil && current["status"] == status {
		made["lastTransitionTime"] = current["lastTransitionTime"]
	}
	d.dropCondition(kind)
	d.status["conditions"] = append(items(d.status, "conditions"), any(made))
}
