package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// pods notes how many pods of which kind each workload has.
func (w *watcher) pods(f facts, step int, api simulate.Reader, namespace string, owned map[string]owner) {
	shrunk := w.shrunk(api, namespace)
	counts := map[string]map[string]int{}
	for _, o := range api.List(world.Pods, namespace) {
		whose, controlled := controller(o)
		if !controlled || strings.HasPrefix(whose.name, "jobs/") { // see jobs
			continue
		}
		name := ""
		if strings.HasPrefix(whose.name, "statefulsets/") {
			name = world.Text(o, "metadata", "name") + ", "
		}
		since := w.firstSeen(o, step, shrunk[whose.uid])
		if workload, ofReplicaSet := owned[whose.uid]; ofReplicaSet {
			whose = workload
		}
		line := fmt.Sprintf("%sof step %d, %s, hash %s, %s", name, since, containers(world.Section(o, "spec")),
			w.hash(whose.name, world.Section(o, "metadata", "annotations")), readiness(o))
		if counts[whose.name] == nil {
			counts[whose.name] = map[string]int{}
		}
		counts[whose.name][line]++
	}
	for workload, lines := range counts {
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			f[workload+" pods"] += fmt.Sprintf("\n      %d × %s", lines[line], line)
		}
	}
}

// firstSeen is the step after which a pod was seen first. Of a ReplicaSet that was made smaller, chance decides which pods
// stay (getPodsRankedByRelatedPodsOnSameNode goes by their nodes, and by their age in powers of two only): then all that
// stay count as made just before.
func (w *watcher) firstSeen(pod world.Object, step int, shrunk bool) int {
	uid := world.Text(pod, "metadata", "uid")
	since, known := w.since[uid]
	if !known {
		since = step
	} else if shrunk {
		since = max(since, step-1)
	}
	w.since[uid] = since
	return since
}

// shrunk returns the UIDs of the ReplicaSets that are to have fewer pods than before, but some.
func (w *watcher) shrunk(api simulate.Reader, namespace string) map[string]bool {
	found := map[string]bool{}
	for _, o := range api.List(world.ReplicaSets, namespace) {
		uid := world.Text(o, "metadata", "uid")
		replicas, _ := strconv.Atoi(value(o, "spec", "replicas"))
		found[uid] = replicas > 0 && replicas < w.replicas[uid]
		w.replicas[uid] = replicas
	}
	return found
}

func readiness(pod world.Object) string {
	if world.IsTrue(pod, "Ready") {
		return "ready"
	}
	return "not ready"
}
