package cluster

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// syncReplicaSet is one pass of the ReplicaSet controller: it creates or deletes as many pods as differ, and writes the
// counts from before (replica_set.go, syncReplicaSet).
func (c *Cluster) syncReplicaSet(key world.Key, object world.Object) {
	o := ownerOf(key, object)
	var pods []world.Object
	for _, pod := range c.claim(o, world.Pods) {
		if active(pod) {
			pods = append(pods, pod)
		}
	}
	replicas := number(object, 1, "spec", "replicas")
	placed := pods
	for range replicas - len(pods) {
		name := c.freeName(o)
		pod := newPod(o, world.Section(object, "spec", "template"), name, nodeFor(placed))
		c.put(podKey(key.Namespace, name), pod)
		placed = append(slices.Clip(placed), pod)
	}
	if surplus := len(pods) - replicas; surplus > 0 {
		for _, pod := range c.leastWanted(object, pods)[:surplus] {
			c.remove(podKey(key.Namespace, nameOf(pod)))
		}
	}
	c.putReplicaSetStatus(key, object, pods)
}

func (c *Cluster) putReplicaSetStatus(key world.Key, object world.Object, pods []world.Object) {
	minimum := number(object, 0, "spec", "minReadySeconds")
	labels := selector{labels: world.Section(object, "spec", "template", "metadata", "labels")}
	var labeled, readyPods, availablePods int
	for _, pod := range pods {
		if labels.matches(world.Labels(pod)) {
			labeled++
		}
		if ready(pod) {
			readyPods++
		}
		if available(pod, minimum) {
			availablePods++
		}
	}
	status := world.Object{
		"replicas": int64(len(pods)), "observedGeneration": int64(number(object, 1, "metadata", "generation")),
	}
	withCount(status, "fullyLabeledReplicas", labeled)
	withCount(status, "readyReplicas", readyPods)
	withCount(status, "availableReplicas", availablePods)
	if !equal(world.Section(object, "status"), status) && !c.defers(key) {
		c.putStatus(key, world.With(object, status, "status"))
	}
	c.wakeWhenAvailable(key, pods, minimum)
}

// candidate is a pod that may be deleted, with what decides about it.
type candidate struct {
	pod            world.Object
	rank, cost     int
	ready          bool
	since, created time.Time
}

// leastWanted sorts pods in the order of deletion (controller_utils.go, ActivePodsWithRanks): unscheduled, pending, not
// ready, cheaper by pod-deletion-cost, on a node with more of the Deployment's pods, younger by orders of magnitude.
// Ties are decided by the uid, as there.
func (c *Cluster) leastWanted(set world.Object, pods []world.Object) []world.Object {
	perNode := c.relatedPerNode(set, pods)
	candidates := make([]candidate, len(pods))
	for i, pod := range pods {
		cost, _ := strconv.Atoi(world.Text(pod, "metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"))
		candidates[i] = candidate{
			pod: pod, rank: perNode[world.Text(pod, "spec", "nodeName")], cost: cost,
			ready: ready(pod), since: timeOf(readySince(pod)), created: timeOf(createdAt(pod)),
		}
	}
	at := time.Now()
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(bit(world.Text(a.pod, "spec", "nodeName") != ""), bit(world.Text(b.pod, "spec", "nodeName") != "")),
			cmp.Compare(bit(phaseOf(a.pod) == "Running"), bit(phaseOf(b.pod) == "Running")),
			cmp.Compare(bit(a.ready), bit(b.ready)),
			cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.rank, a.rank),
			younger(a.since, b.since, at, a.pod, b.pod),
			younger(a.created, b.created, at, a.pod, b.pod),
			cmp.Compare(uidOf(a.pod), uidOf(b.pod)),
		)
	})
	sorted := make([]world.Object, len(candidates))
	for i, one := range candidates {
		sorted[i] = one.pod
	}
	return sorted
}

// younger compares two times by the magnitude of their distance from now; within a magnitude the uid decides.
func younger(a, b, at time.Time, podA, podB world.Object) int {
	if a.Equal(b) || a.IsZero() || b.IsZero() {
		return 0
	}
	return cmp.Or(cmp.Compare(magnitude(at.Sub(a)), magnitude(at.Sub(b))), cmp.Compare(uidOf(podA), uidOf(podB)))
}

func magnitude(age time.Duration) int {
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

// relatedPerNode counts the active pods on each node that belong to the same Deployment.
func (c *Cluster) relatedPerNode(set world.Object, own []world.Object) map[string]int {
	related := own
	if deployment := controllerOf(set); deployment != "" {
		related = nil
		for _, sibling := range c.controlled(deployment, world.ReplicaSets) {
			related = append(related, c.controlled(uidOf(sibling), world.Pods)...)
		}
	}
	perNode := map[string]int{}
	for _, pod := range related {
		if active(pod) {
			perNode[world.Text(pod, "spec", "nodeName")]++
		}
	}
	return perNode
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
