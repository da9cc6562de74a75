package oracle

import (
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// templatePath returns where a kind of workload has its pod template; nil for what is no workload.
func templatePath(plural string) []string {
	switch plural {
	case "deployments", "statefulsets", "daemonsets", rollouts:
		return []string{"spec", "template"}
	case "cronjobs":
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}

// podPath is templatePath, also for Jobs: these are no workloads, since their template never changes.
func podPath(plural string) []string {
	if plural == jobsResource {
		return []string{"spec", "template"}
	}
	return templatePath(plural)
}

// controllerLabels are those that controllers add to what they make from a template.
var controllerLabels = [...]string{
	"pod-template-hash", "controller-revision-hash", "pod-template-generation",
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
}

func isControllerLabel(name string) bool {
	for _, label := range controllerLabels {
		if name == label {
			return true
		}
	}
	return false
}

// sameTemplate compares two pod templates as users see them: the program's annotations and the labels of controllers are
// left out.
func sameTemplate(a, b world.Object, prefix string) bool {
	if one(a, b) {
		return true
	}
	ours := func(name string) bool { return isMark(name, prefix) }
	if !sameWithout(annotationsOf(a), annotationsOf(b), ours) || !sameWithout(labelsOf(a), labelsOf(b), isControllerLabel) {
		return false
	}
	known := func(name string) bool {
		return name == "annotations" || name == "labels" || name == "creationTimestamp"
	}
	return sameWithout(section(a, "metadata"), section(b, "metadata"), known) &&
		equal(plainSpec(section(a, "spec")), plainSpec(section(b, "spec")))
}

// sameWithout compares the fields that are not left out.
func sameWithout(a, b world.Object, leftOut func(string) bool) bool {
	if one(a, b) {
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
	ours := func(name string) bool { return isMark(name, prefix) }
	return sameWithout(annotationsOf(pod), annotationsOf(template), ours) &&
		sameWithout(labelsOf(pod), labelsOf(template), isControllerLabel) &&
		contains(plainSpec(section(pod, "spec")), plainSpec(section(template, "spec")))
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

// marksOf returns the program's annotations among others, as text. The lists of users are no marks.
func marksOf(annotations world.Object, prefix string) string {
	var marks map[string]string
	for name, value := range annotations {
		if !isMark(name, prefix) {
			continue
		}
		if marks == nil {
			marks = map[string]string{}
		}
		marks[name], _ = value.(string)
	}
	return sortedText(marks)
}

// isMark reports whether an annotation is one that the program writes: one with its prefix that is no list, or that of a strategy.
func isMark(name, prefix string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	return ours && rest != configMapList && rest != secretList || name == sourceMark
}
