package act

import (
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// inTemplate makes a patch of a workload from one of its pod template.
func inTemplate(r world.Resource, patch world.Object) world.Object {
	path := world.PodPath(r.Plural)
	for i := len(path) - 1; i >= 0; i-- {
		patch = world.Object{path[i]: patch}
	}
	return patch
}

func templateOf(r world.Resource, workload world.Object) world.Object {
	return world.Section(workload, world.PodPath(r.Plural)...)
}

func isList(key string) bool { return key == listOfConfigMaps || key == listOfSecrets }

// isManaged reports whether an annotation is one that pod-reloader writes: those with its prefix, but for the user's lists.
func isManaged(key string) bool { return strings.HasPrefix(key, Prefix) && !isList(key) }

// without returns the annotations that do not fit, so that the object read stays as it is.
func without(annotations world.Object, drop func(string) bool) world.Object {
	kept := world.Object{}
	for key, value := range annotations {
		if !drop(key) {
			kept[key] = value
		}
	}
	return kept
}

// isPaused reports whether a rollout is paused; kubectl then refuses to restart or undo it.
func isPaused(workload world.Object) bool {
	paused, _ := world.Section(workload, "spec")["paused"].(bool)
	return paused
}
