package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// pausedAt is the annotation of a Deployment that a reload has paused.
const pausedAt = "deployment.reloader.stakater.com/paused-at"

// endless is the annotation of pods of Jobs that never finish.
const endless = "example.com/endless"

// unfinished names what a controller or a kubelet has still to do: on a machine that stalls, nothing may change for long before it is done.
func (s stored) unfinished() error {
	for _, check := range []func() error{s.unseen, s.uncollected, s.unfinishedReplicaSets, s.unfinishedRollouts, s.unfinishedJobs, s.unfinishedPods} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ofTenants are the objects of a resource in the namespaces that users act in.
func (s stored) ofTenants(r world.Resource) []world.Object {
	return slices.DeleteFunc(slices.Clone(s[r]), func(o world.Object) bool {
		return !slices.Contains(tenants, world.Text(o, "metadata", "namespace"))
	})
}

// unseen names a workload that its controller has not looked at.
func (s stored) unseen() error {
	for _, r := range []world.Resource{world.Deployments, world.StatefulSets, world.DaemonSets, world.ReplicaSets} {
		for _, o := range s[r] {
			if world.Text(o, "metadata", "namespace") != act.System && value(o, "status", "observedGeneration") != value(o, "metadata", "generation") {
				return fmt.Errorf("%s was not seen by its controller", nameOf(r, o))
			}
		}
	}
	return nil
}

// uncollected names an object whose controller is gone: the garbage collector deletes it.
func (s stored) uncollected() error {
	there := map[string]bool{}
	for _, objects := range s {
		for _, o := range objects {
			there[world.Text(o, "metadata", "uid")] = true
		}
	}
	for _, r := range []world.Resource{world.ReplicaSets, world.ControllerRevisions, world.Jobs, world.Pods} {
		for _, o := range s.ofTenants(r) {
			if whose, controlled := controller(o); controlled && !there[whose.uid] {
				return fmt.Errorf("%s was not deleted with %s", nameOf(r, o), whose.name)
			}
		}
	}
	return nil
}

// unfinishedReplicaSets names a ReplicaSet that has not its number of pods.
func (s stored) unfinishedReplicaSets() error {
	for _, o := range s.ofTenants(world.ReplicaSets) {
		if wanted, have := count(o, "spec", "replicas"), count(o, "status", "replicas"); wanted != have {
			return fmt.Errorf("%s has %s pods, not %s", nameOf(world.ReplicaSets, o), have, wanted)
		}
	}
	return nil
}

// unfinishedRollouts names a workload some of whose pods are missing or have an older template. Where a rollout is paused, or a pod
// cannot start, that may stay so.
func (s stored) unfinishedRollouts() error {
	stuck := s.stuck()
	for r, counts := range map[world.Resource]struct{ wanted, have []string }{
		world.Deployments:  {[]string{"spec", "replicas"}, []string{"replicas", "updatedReplicas"}},
		world.StatefulSets: {[]string{"spec", "replicas"}, []string{"replicas", "updatedReplicas"}},
		world.DaemonSets:   {[]string{"status", "desiredNumberScheduled"}, []string{"currentNumberScheduled", "updatedNumberScheduled"}},
	} {
		for _, o := range s.ofTenants(r) {
			if value(o, "spec", "paused") == "true" || stuck[world.Text(o, "metadata", "uid")] {
				continue
			}
			wanted := count(o, counts.wanted...)
			for _, field := range counts.have {
				have := count(o, "status", field)
				if field != counts.have[0] && waiting(o) {
					continue
				}
				if have != wanted {
					return fmt.Errorf("%s of %s are %s, not %s", field, nameOf(r, o), have, wanted)
				}
			}
		}
	}
	return nil
}

// waiting reports whether pods of an earlier template stay until a user deletes them, or lowers the partition.
func waiting(o world.Object) bool {
	strategy := world.Section(o, "spec", "updateStrategy")
	return strategy["type"] == "OnDelete" || count(strategy, "rollingUpdate", "partition") != "0"
}

// stuck has the UIDs of workloads with a pod that cannot start, or with a template of such pods.
func (s stored) stuck() map[string]bool {
	found := map[string]bool{}
	for _, r := range []world.Resource{world.Deployments, world.StatefulSets, world.DaemonSets} {
		for _, o := range s[r] {
			if broken(world.Section(templateOf(r, o), "spec")) {
				found[world.Text(o, "metadata", "uid")] = true
			}
		}
	}
	for _, pod := range s[world.Pods] {
		if whose, controlled := controller(pod); controlled && broken(world.Section(pod, "spec")) {
			found[whose.uid] = true
		}
	}
	return found
}

// unfinishedJobs names a pause that goes on, or a Job that has not started, or not finished although its pod does.
func (s stored) unfinishedJobs() error {
	for _, o := range s.ofTenants(world.Deployments) {
		if world.Text(o, "metadata", "annotations", pausedAt) != "" {
			return fmt.Errorf("the pause of %s goes on", nameOf(world.Deployments, o))
		}
	}
	for _, o := range s.ofTenants(world.Jobs) {
		if !settled(o) {
			return fmt.Errorf("%s has not come to rest", nameOf(world.Jobs, o))
		}
	}
	return nil
}

// settled reports whether a Job has nothing left to do.
func settled(job world.Object) bool {
	template := templateOf(world.Jobs, job)
	switch running := count(job, "status", "active"); {
	case world.Finished(job) || world.Section(job, "metadata")["deletionTimestamp"] != nil:
		return true
	case value(job, "spec", "suspend") == "true":
		return running == "0"
	default:
		return running == "1" && (world.Text(template, "metadata", "annotations", endless) == "true" || broken(world.Section(template, "spec")))
	}
}

func (s stored) unfinishedPods() error {
	for _, o := range s.ofTenants(world.Pods) {
		switch name := nameOf(world.Pods, o); {
		case world.Section(o, "metadata")["deletionTimestamp"] != nil:
			return fmt.Errorf("%s is being deleted", name)
		case readiness(o) != "ready" && world.Text(o, "status", "phase") != "Succeeded" && !broken(world.Section(o, "spec")):
			return fmt.Errorf("%s is not ready", name)
		}
	}
	return nil
}

// broken reports whether a pod cannot start.
func broken(spec world.Object) bool { return strings.Contains(containers(spec), "broken") }

// count is a number that the API server leaves out where it is 0.
func count(o world.Object, path ...string) string { return cmp.Or(value(o, path...), "0") }
