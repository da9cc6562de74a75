package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// orders replaces values by the order in which they appeared, for each scope.
type orders map[string][]string

func (o orders) of(scope, value string) int {
	if i := slices.Index(o[scope], value); i >= 0 {
		return i
	}
	o[scope] = append(o[scope], value)
	return len(o[scope]) - 1
}

// hash is the order of a template's digest among those of its workload, and "none" if there is none.
func (w *watcher) hash(workload string, annotations world.Object) string {
	digest, there := annotations[act.Prefix+"config-hash"].(string)
	if !there {
		return "none"
	}
	return fmt.Sprint(w.hashes.of(workload, digest))
}

// template describes a pod template: which one it is to users and which digest it has, both by the order of their
// appearance, and what can be said of it without knowing when it was made.
func (w *watcher) template(workload string, template world.Object) string {
	meta := world.Section(template, "metadata")
	managed, annotations := split(world.Section(meta, "annotations"))
	labels := maps.Clone(world.Section(meta, "labels"))
	maps.DeleteFunc(labels, func(name string, _ any) bool { return isGenerated(name) })
	visible := canonical([]any{annotations, labels, template["spec"]})
	return fmt.Sprintf("template %d, hash %s, managed annotations %v, others %v, %s",
		w.templates.of(workload, visible), w.hash(workload, world.Section(meta, "annotations")), managed,
		slices.Sorted(maps.Keys(annotations)), containers(world.Section(template, "spec")))
}

// isGenerated reports whether a label has a value that a controller or the API server makes up.
func isGenerated(name string) bool {
	name = strings.TrimPrefix(name, "batch.kubernetes.io/")
	return name == appsv1.DefaultDeploymentUniqueLabelKey || name == "controller-uid" || name == "job-name"
}

// containers are the images and the environment.
func containers(spec world.Object) string {
	var all []string
	for _, c := range world.Objects(spec, "containers") {
		words := []string{world.Text(c, "image")}
		for _, variable := range world.Objects(c, "env") {
			words = append(words, world.Text(variable, "name")+"="+plain(variable))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "; ")
}

// plain is the value of a variable. That of a Secret depends on the digest key, which each world draws for itself: that it changes shows
// in the number of the template.
func plain(variable world.Object) string {
	name := world.Text(variable, "name")
	if strings.HasPrefix(name, "STAKATER_") && strings.HasSuffix(name, "_SECRET") {
		return "(keyed)"
	}
	return world.Text(variable, "value")
}

func templateOf(r world.Resource, o world.Object) world.Object {
	switch r {
	case world.CronJobs:
		return world.Section(o, "spec", "jobTemplate", "spec", "template")
	case world.ControllerRevisions:
		return world.Section(o, "data", "spec", "template")
	}
	return world.Section(o, "spec", "template")
}
