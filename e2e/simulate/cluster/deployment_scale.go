package cluster

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// scaled reports whether the number of replicas was changed since the ReplicaSets were sized (isScalingEvent).
func (d *deployment) scaled() bool {
	for _, set := range withPods(d.all()) {
		if desired, ok := countAnnotation(set.object, desiredAnnotation); ok && desired != d.replicas {
			return true
		}
	}
	return false
}

func countAnnotation(object world.Object, name string) (int, bool) {
	count, err := strconv.ParseUint(world.Text(object, "metadata", "annotations", name), 10, 31)
	return int(count), err == nil
}

// resize sets the size of a ReplicaSet, and reports whether it changed. With force the annotations are brought up to date
// although the size is right (scaleReplicaSet).
func (d *deployment) resize(set *replicaSet, replicas int, force bool) bool {
	changed := set.replicas != replicas
	if !changed && !force {
		return false
	}
	desired, most := d.desired()
	annotations := world.Annotations(set.object)
	if !changed && annotations[desiredAnnotation] == desired && annotations[maxReplicasAnnotation] == most {
		return false
	}
	annotations = plus(plus(annotations, desiredAnnotation, desired), maxReplicasAnnotation, most)
	set.store(d.c, world.With(world.With(set.object, annotations, "metadata", "annotations"), int64(replicas), "spec", "replicas"))
	set.replicas = replicas
	return changed
}

// scale sizes the ReplicaSets after the number of replicas changed, or while the Deployment is paused: the only active
// one, or the newest, gets all; several share in proportion to their sizes (sync.go, scale).
func (d *deployment) scale() {
	active := withPods(d.all())
	switch {
	case len(d.all()) == 0:
	case len(active) == 0:
		newest := d.fresh
		if newest == nil {
			newest = d.old[len(d.old)-1]
		}
		d.resize(newest, d.replicas, false)
	case len(active) == 1:
		d.resize(active[0], d.replicas, false)
	case d.saturated():
		for _, set := range withPods(d.old) {
			d.resize(set, 0, false)
		}
	case d.rolling:
		d.scaleInProportion(active)
	}
}

// saturated reports whether the ReplicaSet of the current template has all the pods, and all are available.
func (d *deployment) saturated() bool {
	if d.fresh == nil {
		return false
	}
	desired, ok := countAnnotation(d.fresh.object, desiredAnnotation)
	return ok && desired == d.replicas && d.fresh.replicas == d.replicas && d.fresh.available == d.replicas
}

func (d *deployment) scaleInProportion(sets []*replicaSet) {
	allowed := 0
	if d.replicas > 0 {
		allowed = d.replicas + d.surge
	}
	change := allowed - sum(sets, wantedPods)
	slices.SortFunc(sets, func(a, b *replicaSet) int {
		age := byAge(a.object, b.object)
		if change > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(b.replicas, a.replicas), age)
	})
	sizes, done := make([]int, len(sets)), 0
	for i, set := range sets {
		share := 0
		if change != 0 {
			share = d.share(set, change, done)
		}
		sizes[i] = set.replicas + share
		done += share
	}
	if change != 0 {
		sizes[0] = max(sizes[0]+change-done, 0)
	}
	for i, set := range sets {
		d.resize(set, sizes[i], true)
	}
}

// share is the part of a change of size that falls to a ReplicaSet (GetReplicaSetProportion).
func (d *deployment) share(set *replicaSet, change, done int) int {
	if set.replicas == 0 || change == done {
		return 0
	}
	fraction := -set.replicas
	if d.replicas != 0 {
		before, ok := countAnnotation(set.object, maxReplicasAnnotation)
		if !ok || before == 0 {
			before = number(d.status, 0, "replicas")
		}
		if before == 0 {
			return 0
		}
		size := float64(set.replicas*(d.replicas+d.surge)) / float64(before)
		fraction = int(math.Round(size)) - set.replicas
	}
	if change > 0 {
		return min(fraction, change-done)
	}
	return max(fraction, change-done)
}
