package oracle

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// controllerLabels are those that controllers add to what they make from a template.
var controllerLabels = [...]string{
	"pod-template-hash", "controller-revision-hash", "pod-template-generation",
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
}

func isControllerLabel(name string) bool { return slices.Contains(controllerLabels[:], name) }

// sameTemplate compares two pod templates as users see them: the program's annotations and the labels of controllers are
// left out.
func sameTemplate(a, b world.Object, prefix string) bool {
	if world.Same(a, b) {
		return true
	}
	ours := func(name string) bool { return isManagedAnnotation(name, prefix) }
	if !sameWithout(world.Annotations(a), world.Annotations(b), ours) || !sameWithout(world.Labels(a), world.Labels(b), isControllerLabel) {
		return false
	}
	known := func(name string) bool {
		return name == "annotations" || name == "labels" || name == "creationTimestamp"
	}
	return sameWithout(world.Section(a, "metadata"), world.Section(b, "metadata"), known) &&
		equal(plainSpec(world.Section(a, "spec")), plainSpec(world.Section(b, "spec")))
}

// sameWithout compares the fields that are not left out.
func sameWithout(a, b world.Object, leftOut func(string) bool) bool {
	if world.Same(a, b) {
		return true
	}
	for name, value := range a {
		if !leftOut(name) && !equal(value, b[name]) {
			return false
		}
	}
	for name, value := range b {
		if _, both := a[name]; !both && !leftOut(name) && !empty(value) {
			return false
		}
	}
	return true
}

// madeFrom reports whether a pod was made from a template, as far as its own fields show. A pod has more fields than its
// template, so that this is only used where no ReplicaSet or ControllerRevision is known.
func madeFrom(pod, template world.Object, prefix string) bool {
	ours := func(name string) bool { return isManagedAnnotation(name, prefix) }
	return sameWithout(world.Annotations(pod), world.Annotations(template), ours) &&
		sameWithout(world.Labels(pod), world.Labels(template), isControllerLabel) &&
		contains(plainSpec(world.Section(pod, "spec")), plainSpec(world.Section(template, "spec")))
}

// contains reports whether all fields of part are in whole. Lists of a pod may be longer than those of its template.
func contains(whole, part any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		if !ok {
			return len(p) == 0
		}
		for name, value := range p {
			if !contains(w[name], value) {
				return false
			}
		}
		return true
	case []any:
		w, _ := whole.([]any)
		if len(w) < len(p) {
			return false
		}
		for i := range p {
			if !contains(w[i], p[i]) {
				return false
			}
		}
		return true
	}
	return equal(whole, part)
}

// managedAnnotationsOf returns the program's annotations among others, as text. The lists of users are no managed annotations.
func managedAnnotationsOf(annotations world.Object, prefix string) string {
	var managed map[string]string
	for name, value := range annotations {
		if !isManagedAnnotation(name, prefix) {
			continue
		}
		if managed == nil {
			managed = map[string]string{}
		}
		managed[name], _ = value.(string)
	}
	return sortedText(managed)
}

// isManagedAnnotation reports whether an annotation is one that the program writes: one with its prefix that is no
// list, or that of a strategy.
func isManagedAnnotation(name, prefix string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	return ours && rest != configMapList && rest != secretList || name == sourceAnnotation
}

// number returns the same number for templates that are the same to users.
func (w *workload) number(template world.Object, prefix string) int {
	for i := len(w.templates) - 1; i >= 0; i-- {
		if sameTemplate(w.templates[i], template, prefix) {
			return i
		}
	}
	w.templates = append(w.templates, template)
	return len(w.templates) - 1
}
