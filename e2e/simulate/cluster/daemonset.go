package cluster

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// templateGeneration is the annotation of the API server from which pods get a label.
const templateGeneration = "deprecated.daemonset.template.generation"

// daemonSet is what one pass of the DaemonSet controller works on.
type daemonSet struct {
	owner
	c        *Cluster
	minReady int
	// hash is the label of the pods with the current template.
	hash       string
	collisions int
	old        []revision
	// pods has the pods of each node.
	pods [len(nodes)][]world.Object
}

// syncDaemonSet is one pass (daemon_controller.go, syncDaemonSet). It creates and removes what is missing and too much, or
// else, if nothing is, replaces pods of an old template.
func (c *Cluster) syncDaemonSet(key world.Key, object world.Object) {
	s := &daemonSet{
		owner: ownerOf(key, object), c: c,
		minReady:   number(object, 0, "spec", "minReadySeconds"),
		collisions: number(object, 0, "status", "collisionCount"),
	}
	claimed := c.claim(s.owner, world.Pods)
	s.findRevision(claimed)
	s.place(claimed)
	if !s.manage() && world.Text(object, "spec", "updateStrategy", "type") != "OnDelete" {
		s.roll()
	}
	s.truncate()
	s.place(c.controlled(uidOf(object), world.Pods))
	s.putStatus()
}

func (s *daemonSet) place(pods []world.Object) {
	s.pods = [len(nodes)][]world.Object{}
	for _, pod := range pods {
		if i := slices.Index(nodes[:], world.Text(pod, "spec", "nodeName")); i >= 0 && !deleting(pod) {
			s.pods[i] = append(s.pods[i], pod)
		}
	}
	for _, there := range s.pods {
		slices.SortStableFunc(there, byAge)
	}
}

// findRevision finds or makes the revision of the template, with the highest number (constructHistory). Of several the one
// with the highest number is kept, and its hash given to the pods (dedupCurHistories).
func (s *daemonSet) findRevision(pods []world.Object) {
	wanted := s.c.printOf(s.key, world.Section(s.object, "spec", "template"))
	var found []revision
	next := 1
	for _, r := range s.c.revisions(s.owner) {
		if r.print == wanted {
			found = append(found, r)
			continue
		}
		s.old = append(s.old, r)
		next = max(next, r.number+1)
	}
	if len(found) == 0 {
		r, collisions := s.c.createRevision(s.owner, next, revisionHashLabel, s.collisions)
		s.hash, s.collisions = podRevision(r.object), collisions
		return
	}
	kept := found[len(found)-1]
	s.hash = podRevision(kept.object)
	if len(found) > 1 {
		s.relabel(pods)
		for _, r := range found[:len(found)-1] {
			s.c.remove(r.key)
		}
	}
	if kept.number < next {
		s.c.renumber(kept, next)
	}
}

func (s *daemonSet) relabel(pods []world.Object) {
	for i, pod := range pods {
		if podRevision(pod) != s.hash {
			relabeled := world.With(pod, s.hash, "metadata", "labels", revisionHashLabel)
			if stored := s.c.put(podKey(s.key.Namespace, nameOf(pod)), relabeled); stored != nil {
				pods[i] = stored
			}
		}
	}
}

// manage removes finished pods and all but the oldest of a node, and creates those that are missing. It reports whether it
// did anything: then the rollout waits for the next pass (podsShouldBeOnNode).
func (s *daemonSet) manage() bool {
	worked := false
	for i, node := range nodes {
		var running []world.Object
		for _, pod := range s.pods[i] {
			if active(pod) {
				running = append(running, pod)
				continue
			}
			s.remove(pod)
			worked = true
		}
		for _, surplus := range running[min(len(running), 1):] {
			s.remove(surplus)
			worked = true
		}
		if len(s.pods[i]) == 0 {
			s.create(node)
			worked = true
		}
	}
	return worked
}

func (s *daemonSet) create(node string) {
	name := s.c.freeName(s.owner)
	template := world.Section(s.object, "spec", "template")
	labels := plus(world.Labels(template), revisionHashLabel, s.hash)
	if generation := world.Text(s.object, "metadata", "annotations", templateGeneration); generation != "" {
		labels["pod-template-generation"] = generation
	}
	s.c.put(podKey(s.key.Namespace, name), world.With(newPod(s.owner, template, name, node), labels, "metadata", "labels"))
}

func (s *daemonSet) remove(pod world.Object) { s.c.remove(podKey(s.key.Namespace, nameOf(pod))) }

// roll removes old pods: all that are not available, and as many others as maxUnavailable allows (rollingUpdate).
func (s *daemonSet) roll() {
	var broken, candidates []world.Object
	down := 0
	for i := range nodes {
		if len(s.pods[i]) != 1 {
			down++
			continue
		}
		switch pod := s.pods[i][0]; {
		case podRevision(pod) == s.hash:
			down += 1 - bit(available(pod, s.minReady))
		case !available(pod, s.minReady):
			broken = append(broken, pod)
			down++
		default:
			candidates = append(candidates, pod)
		}
	}
	allowed := max(scaled(world.Field(s.object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), "1", len(nodes), true), 1)
	candidates = candidates[:min(len(candidates), max(allowed-down, 0))]
	for _, pod := range append(broken, candidates...) {
		s.remove(pod)
	}
}

// truncate removes old revisions that no pod has, beyond the history limit (cleanupHistory).
func (s *daemonSet) truncate() {
	surplus := len(s.old) - number(s.object, 10, "spec", "revisionHistoryLimit")
	live := map[string]bool{}
	for _, there := range s.pods {
		for _, pod := range there {
			live[podRevision(pod)] = true
		}
	}
	for _, r := range s.old {
		if surplus > 0 && !live[podRevision(r.object)] {
			s.c.remove(r.key)
			surplus--
		}
	}
}

func (s *daemonSet) putStatus() {
	var scheduled, updated, readyPods, availablePods int
	var all []world.Object
	for _, there := range s.pods {
		if len(there) == 0 {
			continue
		}
		pod := there[0]
		all = append(all, pod)
		scheduled++
		updated += bit(podRevision(pod) == s.hash)
		readyPods += bit(ready(pod))
		availablePods += bit(available(pod, s.minReady))
	}
	status := world.Object{
		"observedGeneration": int64(number(s.object, 1, "metadata", "generation")), "numberMisscheduled": int64(0),
		"desiredNumberScheduled": int64(len(nodes)), "currentNumberScheduled": int64(scheduled), "numberReady": int64(readyPods),
	}
	withCount(status, "updatedNumberScheduled", updated)
	withCount(status, "numberAvailable", availablePods)
	withCount(status, "numberUnavailable", len(nodes)-availablePods)
	withCount(status, "collisionCount", s.collisions)
	collided := number(s.object, 0, "status", "collisionCount") != s.collisions
	if !equal(world.Section(s.object, "status"), status) && (collided || !s.c.defers(s.key)) {
		s.c.putStatus(s.key, world.With(s.object, status, "status"))
	}
	s.c.wakeWhenAvailable(s.key, all, s.minReady)
}
