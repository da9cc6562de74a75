package cluster

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A Rollout can be restarted without a new template (rollout/restart.go of Argo Rollouts 1.10): pods that were created before
// spec.restartAt are deleted once that is past, and their ReplicaSets replace them. status.restartedAt notes that none is left. A new template
// does not end a restart: resetRolloutStatus means to note that, but in a copy of the status that is not stored.

// restartPods is one step of a restart. It reports whether it has deleted pods: the pass then ends, since the ReplicaSets still count them
// as available.
func (d *deployment) restartPods() bool {
	text := world.Text(d.object, "spec", "restartAt")
	at := timeOf(text)
	if at.IsZero() || at.After(time.Now()) || at.Equal(timeOf(world.Text(d.status, "restartedAt"))) {
		return false
	}
	pods := d.pods()
	older := slices.DeleteFunc(slices.Clone(pods), func(pod world.Object) bool { return !timeOf(createdAt(pod)).Before(at) })
	if len(older) == 0 {
		d.status["restartedAt"] = text
		return false
	}
	d.c.owe(d.key) // the real one looks again when pods have become available, and every 30 s
	deleted := min(max(d.spare(pods), 0), len(older))
	for _, pod := range older[:deleted] {
		d.c.remove(podKey(d.key.Namespace, nameOf(pod)))
	}
	return deleted > 0
}

// pods returns those of all ReplicaSets, sorted by name.
func (d *deployment) pods() []world.Object {
	var pods []world.Object
	for _, set := range d.all() {
		pods = append(pods, d.c.controlled(uidOf(set.object), world.Pods)...)
	}
	slices.SortFunc(pods, byName)
	return pods
}

// spare is how many of the available pods may be missing: maxUnavailable, but at least one.
func (d *deployment) spare(pods []world.Object) int {
	count, minimum := 0, number(d.object, 0, "spec", "minReadySeconds")
	for _, pod := range pods {
		if available(pod, minimum) {
			count++
		}
	}
	return count - max(d.replicas, sum(d.all(), wantedPods)) + max(d.unavailable, 1)
}

// wakeAtRestart makes the controller look again at the time of a restart.
func (d *deployment) wakeAtRestart() {
	if at := timeOf(world.Text(d.object, "spec", "restartAt")); at.After(time.Now()) {
		d.c.wake(d.key, at)
	}
}
