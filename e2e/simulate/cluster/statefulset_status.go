package cluster

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// podRevision is the name of a StatefulSet's revision, or the hash of a DaemonSet's.
func podRevision(pod world.Object) string {
	return world.Text(pod, "metadata", "labels", revisionHashLabel)
}

// putStatus writes the counts from the beginning of the pass, and ends a rollout when all pods have the revision of the
// template and are ready (completeRollingUpdate).
func (s *statefulSet) putStatus() {
	readyPods := s.count(func(pod world.Object) bool { return phaseOf(pod) == "Running" && ready(pod) })
	availablePods := s.count(s.available)
	currents := s.count(func(pod world.Object) bool { return podRevision(pod) == s.current.key.Name }) - s.replaced
	updated := s.count(func(pod world.Object) bool { return podRevision(pod) == s.update.key.Name })
	name := s.current.key.Name
	if s.rolling && updated == s.replicas && readyPods == s.replicas && len(s.members) == s.replicas {
		name, currents = s.update.key.Name, updated
	}
	status := world.Object{
		"observedGeneration": int64(number(s.object, 1, "metadata", "generation")),
		"replicas":           int64(len(s.members)), "availableReplicas": int64(availablePods),
		"currentRevision": name, "updateRevision": s.update.key.Name, "collisionCount": int64(s.collisions),
	}
	withCount(status, "readyReplicas", readyPods)
	withCount(status, "currentReplicas", currents)
	withCount(status, "updatedReplicas", updated)
	if !equal(world.Section(s.object, "status"), status) && (s.needsStatus(currents) || !s.c.defers(s.key)) {
		s.c.putStatus(s.key, world.With(s.object, status, "status"))
	}
	s.c.wakeWhenAvailable(s.key, s.members, s.minReady)
}

// needsStatus reports whether the next pass needs the status: the current revision, the collision count, and without a partition how many
// pods keep the current revision.
func (s *statefulSet) needsStatus(currents int) bool {
	return world.Text(s.object, "status", "currentRevision") == "" || number(s.object, 0, "status", "collisionCount") != s.collisions ||
		s.rolling && !s.partitioned && currents < s.kept()
}

func (s *statefulSet) count(fits func(world.Object) bool) int {
	n := 0
	for _, pod := range s.members {
		if fits(pod) {
			n++
		}
	}
	return n
}

// truncate removes revisions that neither the status nor a pod names, beyond the history limit.
func (s *statefulSet) truncate(revisions []revision) {
	live := map[string]bool{s.current.key.Name: true, s.update.key.Name: true}
	for _, pod := range s.members {
		live[podRevision(pod)] = true
	}
	var old []revision
	for _, r := range revisions {
		if !live[r.key.Name] {
			old = append(old, r)
		}
	}
	s.c.truncate(old, number(s.object, 10, "spec", "revisionHistoryLimit"))
}
