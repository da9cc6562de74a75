package cluster

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func phaseOf(pod world.Object) string { return world.Text(pod, "status", "phase") }

// active reports whether a pod counts for its controller: it is neither finished nor being deleted.
func active(pod world.Object) bool {
	phase := phaseOf(pod)
	return phase != "Succeeded" && phase != "Failed" && !deleting(pod)
}

func ready(pod world.Object) bool {
	return world.IsTrue(pod, "Ready")
}

// readySince is empty for a pod that is not ready.
func readySince(pod world.Object) string {
	if found := world.Condition(pod, "Ready"); world.Text(found, "status") == "True" {
		return world.Text(found, "lastTransitionTime")
	}
	return ""
}

// available reports whether a pod has been ready for the given number of seconds.
func available(pod world.Object, minReadySeconds int) bool {
	return ready(pod) && (minReadySeconds == 0 || !availableAt(pod, minReadySeconds).After(time.Now()))
}

func availableAt(pod world.Object, minReadySeconds int) time.Time {
	return timeOf(readySince(pod)).Add(time.Duration(minReadySeconds) * time.Second)
}

// wakeWhenAvailable makes a controller look again when the first of the ready pods becomes available.
func (c *Cluster) wakeWhenAvailable(key world.Key, pods []world.Object, minReadySeconds int) {
	if minReadySeconds == 0 {
		return
	}
	var first time.Time
	for _, pod := range pods {
		if at := availableAt(pod, minReadySeconds); ready(pod) && at.After(time.Now()) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		c.wake(key, first)
	}
}
