package cluster

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// roll is one step of a rolling update: the new ReplicaSet grows, or else the old ones shrink (rolling.go, rolloutRolling).
func (d *deployment) roll() {
	if d.fresh == nil {
		d.createFresh()
	}
	if d.fresh == nil || d.growFresh() || d.shrinkOld() {
		return
	}
	if d.complete(world.Section(d.object, "status")) {
		d.cleanUp()
	}
}

func (d *deployment) growFresh() bool {
	switch {
	case d.fresh.replicas == d.replicas:
		return false
	case d.fresh.replicas > d.replicas:
		return d.resize(d.fresh, d.replicas, false)
	}
	return d.resize(d.fresh, d.freshReplicas(), false)
}

// freshReplicas is the size that the new ReplicaSet may have now (NewRSNewReplicas).
func (d *deployment) freshReplicas() int {
	if !d.rolling {
		return d.replicas
	}
	left := d.replicas + d.surge - sum(d.all(), wantedPods)
	if left <= 0 {
		return d.fresh.replicas
	}
	return d.fresh.replicas + min(left, d.replicas-d.fresh.replicas)
}

// shrinkOld scales the old ReplicaSets down: first by pods that are not available, then as far as maxUnavailable allows
// (reconcileOldReplicaSets). New pods that are not available count against it.
func (d *deployment) shrinkOld() bool {
	old := withPods(d.old)
	if len(old) == 0 {
		return false
	}
	required := d.replicas - d.unavailable
	most := sum(d.all(), wantedPods) - required - (d.fresh.replicas - d.fresh.available)
	if most <= 0 {
		return false
	}
	removed := 0
	for _, set := range old {
		if removed >= most {
			break
		}
		unhealthy := min(most-removed, set.replicas-set.available)
		if unhealthy < 0 {
			return false // the status is older than the last change of size: as in reality, wait for it
		}
		if unhealthy > 0 {
			d.resize(set, set.replicas-unhealthy, false)
			removed += unhealthy
		}
	}
	spare := sum(append(old, d.fresh), availablePods) - required
	for _, set := range old {
		if spare <= 0 {
			break
		}
		if count := min(set.replicas, spare); count > 0 {
			d.resize(set, set.replicas-count, false)
			removed += count
			spare -= count
		}
	}
	return removed > 0
}

// recreate is one step of the strategy Recreate: the new pods start when the old ones are gone (recreate.go).
func (d *deployment) recreate() {
	shrunk := false
	for _, set := range d.old {
		shrunk = d.resize(set, 0, false) || shrunk
	}
	if shrunk || d.oldPodsRun() {
		return
	}
	if d.fresh == nil {
		d.createFresh()
	}
	if d.fresh == nil {
		return
	}
	d.resize(d.fresh, d.replicas, false)
	if d.complete(world.Section(d.object, "status")) {
		d.cleanUp()
	}
}

func (d *deployment) oldPodsRun() bool {
	if sum(d.old, actualPods) > 0 {
		return true
	}
	for _, set := range d.old {
		for _, pod := range d.c.controlled(uidOf(set.object), world.Pods) {
			if phase := phaseOf(pod); phase != "Succeeded" && phase != "Failed" {
				return true
			}
		}
	}
	return false
}
