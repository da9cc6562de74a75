package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// deployment is what one pass of the Deployment controller works on.
type deployment struct {
	owner
	c *Cluster
	// replicas, surge and unavailable are resolved numbers of pods.
	replicas, surge, unavailable int
	rolling, paused              bool
	// fresh is the ReplicaSet with the template of the Deployment, nil if there is none; old has the others, oldest first.
	fresh *replicaSet
	old   []*replicaSet
	// status and revision are written at the end of the pass.
	status   world.Object
	revision string
}

// replicaSet is a ReplicaSet of a Deployment.
type replicaSet struct {
	key    world.Key
	object world.Object
	// replicas are wanted, actual, ready and available ones reported.
	replicas, actual, ready, available int
}

func readReplicaSet(namespace string, object world.Object) *replicaSet {
	return &replicaSet{
		key:      world.Key{Resource: world.ReplicaSets, Namespace: namespace, Name: nameOf(object)},
		object:   object,
		replicas: number(object, 1, "spec", "replicas"), actual: number(object, 0, "status", "replicas"),
		ready: number(object, 0, "status", "readyReplicas"), available: number(object, 0, "status", "availableReplicas"),
	}
}

// syncDeployment is one pass (deployment_controller.go, syncDeployment).
func (c *Cluster) syncDeployment(key world.Key, object world.Object) {
	d := c.readDeployment(key, object)
	d.findReplicaSets()
	d.syncPausedCondition()
	if d.fresh != nil {
		d.annotateFresh()
	}
	if c.refused {
		return // the real controller does not go on either
	}
	switch {
	case d.paused:
		d.scale()
		d.cleanUp()
		d.countStatus()
	case d.scaled():
		d.scale()
		d.countStatus()
	case d.restartPods():
		return
	case d.rolling:
		d.roll()
		d.rolloutStatus()
	default:
		d.recreate()
		d.rolloutStatus()
	}
	d.wakeAtRestart()
	d.store()
}

func (c *Cluster) readDeployment(key world.Key, object world.Object) *deployment {
	d := &deployment{
		owner: ownerOf(key, object), c: c,
		replicas: number(object, 1, "spec", "replicas"),
		rolling:  world.Text(object, "spec", "strategy", "type") != "Recreate",
		paused:   truth(object, "spec", "paused"),
		status:   maps.Clone(world.Section(object, "status")),
		revision: world.Text(object, "metadata", "annotations", revisionAnnotation),
	}
	if d.status == nil {
		d.status = world.Object{}
	}
	if d.rolling {
		update := world.Section(object, "spec", "strategy", "rollingUpdate")
		d.surge = scaled(update["maxSurge"], "25%", d.replicas, true)
		d.unavailable = scaled(update["maxUnavailable"], "25%", d.replicas, false)
		if d.surge == 0 && d.unavailable == 0 {
			d.unavailable = 1
		}
		d.unavailable = min(d.unavailable, d.replicas)
	}
	return d
}

// findReplicaSets finds the one with the Deployment's template, the oldest if there are several (FindNewReplicaSet).
func (d *deployment) findReplicaSets() {
	sets := d.c.claim(d.owner, world.ReplicaSets)
	slices.SortStableFunc(sets, byAge)
	wanted := d.c.printOf(d.key, world.Section(d.object, "spec", "template"))
	for _, object := range sets {
		set := readReplicaSet(d.key.Namespace, object)
		if d.fresh == nil && d.c.printOf(set.key, world.Section(object, "spec", "template")) == wanted {
			d.fresh = set
			continue
		}
		d.old = append(d.old, set)
	}
}

// all returns every ReplicaSet, the old ones first.
func (d *deployment) all() []*replicaSet {
	if d.fresh == nil {
		return slices.Clone(d.old)
	}
	return append(slices.Clone(d.old), d.fresh)
}

func withPods(sets []*replicaSet) []*replicaSet {
	var found []*replicaSet
	for _, set := range sets {
		if set.replicas > 0 {
			found = append(found, set)
		}
	}
	return found
}

func sum(sets []*replicaSet, count func(*replicaSet) int) int {
	total := 0
	for _, set := range sets {
		total += count(set)
	}
	return total
}

func wantedPods(set *replicaSet) int    { return set.replicas }
func actualPods(set *replicaSet) int    { return set.actual }
func readyPods(set *replicaSet) int     { return set.ready }
func availablePods(set *replicaSet) int { return set.available }

// cleanUp removes the oldest empty ReplicaSets beyond the history limit (cleanupDeployment).
func (d *deployment) cleanUp() {
	old := slices.DeleteFunc(slices.Clone(d.old), func(set *replicaSet) bool { return deleting(set.object) })
	surplus := len(old) - number(d.object, 10, "spec", "revisionHistoryLimit")
	if surplus <= 0 {
		return
	}
	slices.SortStableFunc(old, func(a, b *replicaSet) int {
		return cmp.Or(cmp.Compare(revisionOf(a.object), revisionOf(b.object)), byAge(a.object, b.object))
	})
	for _, set := range old[:surplus] {
		behind := number(set.object, 1, "metadata", "generation") > number(set.object, 0, "status", "observedGeneration")
		if set.actual == 0 && set.replicas == 0 && !behind {
			d.c.remove(set.key)
		}
	}
}

// store writes the status and the revision if they changed.
func (d *deployment) store() {
	if !d.needsStatus() && d.c.defers(d.key) {
		return
	}
	object, changed := d.object, false
	if !equal(world.Section(object, "status"), d.status) {
		object, changed = world.With(object, d.status, "status"), true
	}
	if d.revision != world.Text(object, "metadata", "annotations", revisionAnnotation) {
		object, changed = world.With(object, d.revision, "metadata", "annotations", revisionAnnotation), true
	}
	if changed {
		d.c.putStatus(d.key, object)
	}
}

// needsStatus reports whether a later pass needs the status of this one: the collision count, the counts from which a
// rollout begins, the last restart, and every step of the progress: the deadline counts from the last, and one that is left out looks like none.
func (d *deployment) needsStatus() bool {
	before := world.Section(d.object, "status")
	for _, count := range []string{"collisionCount", "observedGeneration"} {
		if number(d.status, 0, count) != number(before, 0, count) {
			return true
		}
	}
	return world.Text(d.status, "restartedAt") != world.Text(before, "restartedAt") ||
		world.Text(d.condition("Progressing"), "reason") != world.Text(world.Condition(d.object, "Progressing"), "reason")
}

func revisionOf(object world.Object) int64 {
	revision, _ := strconv.ParseInt(world.Text(object, "metadata", "annotations", revisionAnnotation), 10, 64)
	return revision
}
