package cluster

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// brokenImage is the part of an image's name that makes it impossible to pull.
const brokenImage = "broken"

// endless is an annotation of the pods of Jobs that run until they are deleted.
const endless = "example.com/endless"

// blockage is why a pod does not start.
type blockage struct {
	uid     string
	spec    world.Object
	missing []requirement
}

// notePod makes the start of a pod pending, unless it runs or is known to wait. The caller holds mu.
func (c *Cluster) notePod(key world.Key, pod world.Object) {
	if phase := phaseOf(pod); (phase != "" && phase != "Pending") || deleting(pod) {
		c.queue.drop(piece{start, key})
		return
	}
	if known, ok := c.blocked[key]; ok && known.uid == uidOf(pod) && equal(known.spec, world.Section(pod, "spec")) {
		return
	}
	c.queue.add(piece{start, key})
}

// noteConfig makes the start of the pods that wait for this object pending. The caller holds mu.
func (c *Cluster) noteConfig(key world.Key) {
	for pod, why := range c.blocked {
		if slices.ContainsFunc(why.missing, func(r requirement) bool { return r.object == key }) {
			c.queue.add(piece{start, pod})
		}
	}
}

// start is one pass of the kubelet over a pod that does not run: it starts it, or says in the status why it waits. The order
// is the kubelet's: volumes, image, environment. A pod without its volumes waits as ContainerCreating, one without its
// environment as CreateContainerConfigError.
func (c *Cluster) start(key world.Key) {
	pod, ok := c.store.Get(key)
	if phase := phaseOf(pod); !ok || deleting(pod) || (phase != "" && phase != "Pending") {
		return
	}
	missing := c.missing(key.Namespace, world.Section(pod, "spec"))
	reason, message := waitingReason(world.Section(pod, "spec"), missing)
	if reason == "" {
		c.block(key, nil)
		c.putStatus(key, world.With(pod, startedStatus(pod), "status"))
		return
	}
	c.block(key, &blockage{uidOf(pod), world.Section(pod, "spec"), missing})
	status := waitingStatus(pod, reason, message)
	if !equal(world.Section(pod, "status"), status) {
		c.putStatus(key, world.With(pod, status, "status"))
	}
}

func (c *Cluster) block(key world.Key, why *blockage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why == nil {
		delete(c.blocked, key)
		return
	}
	c.blocked[key] = *why
}

func waitingReason(spec world.Object, missing []requirement) (reason, message string) {
	if i := slices.IndexFunc(missing, func(r requirement) bool { return r.mounted }); i >= 0 {
		return "ContainerCreating", ""
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, one := range world.Objects(spec, list) {
			if image := world.Text(one, "image"); strings.Contains(image, brokenImage) {
				return "ImagePullBackOff", "Back-off pulling image \"" + image + "\""
			}
		}
	}
	if len(missing) == 0 {
		return "", ""
	}
	first := missing[0]
	if first.item != "" {
		return "CreateContainerConfigError", "couldn't find key " + first.item + " in " + first.object.Resource.Kind + " " +
			first.object.Namespace + "/" + first.object.Name
	}
	return "CreateContainerConfigError", first.object.Resource.Kind + " \"" + first.object.Name + "\" not found"
}

// waitingStatus keeps the times of the conditions if the pod waited before.
func waitingStatus(pod world.Object, reason, message string) world.Object {
	since, begun := now(), world.Text(pod, "status", "startTime")
	if found := world.Condition(pod, "Ready"); found != nil {
		since = world.Text(found, "lastTransitionTime")
	}
	if begun == "" {
		begun = now()
	}
	waiting := world.Object{"reason": reason}
	if message != "" {
		waiting["message"] = message
	}
	return world.Object{
		"phase": "Pending", "startTime": begun,
		"conditions":        podConditions("False", "ContainersNotReady", since),
		"containerStatuses": containerStatuses(pod, false, world.Object{"waiting": waiting}),
	}
}

// startedStatus is that of a running pod. One that is not restarted, as the pod of a Job, is done as soon as it starts, unless an
// annotation says that it never is.
func startedStatus(pod world.Object) world.Object {
	stamp := now()
	begun := world.Text(pod, "status", "startTime")
	if begun == "" {
		begun = stamp
	}
	finishes := world.Text(pod, "metadata", "annotations", endless) != "true"
	if policy := world.Text(pod, "spec", "restartPolicy"); finishes && (policy == "Never" || policy == "OnFailure") {
		done := world.Object{"exitCode": int64(0), "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}
		return world.Object{
			"phase": "Succeeded", "startTime": begun,
			"conditions":        podConditions("False", "PodCompleted", stamp),
			"containerStatuses": containerStatuses(pod, false, world.Object{"terminated": done}),
		}
	}
	return world.Object{
		"phase": "Running", "startTime": begun,
		"conditions":        podConditions("True", "", stamp),
		"containerStatuses": containerStatuses(pod, true, world.Object{"running": world.Object{"startedAt": stamp}}),
	}
}

func podConditions(readiness, reason, since string) []any {
	conditions := []any{}
	for _, kind := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		one := world.Object{"type": kind, "status": "True", "lastTransitionTime": since}
		if kind == "ContainersReady" || kind == "Ready" {
			one["status"] = readiness
			if reason != "" {
				one["reason"] = reason
			}
		}
		conditions = append(conditions, one)
	}
	return conditions
}

func containerStatuses(pod world.Object, running bool, state world.Object) []any {
	var statuses []any
	for _, one := range world.Objects(pod, "spec", "containers") {
		statuses = append(statuses, world.Object{
			"name": world.Text(one, "name"), "image": world.Text(one, "image"), "imageID": "", "ready": running, "started": running,
			"restartCount": int64(0), "state": state, "lastState": world.Object{},
		})
	}
	return statuses
}
