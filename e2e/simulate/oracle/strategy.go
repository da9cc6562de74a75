package oracle

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// What --reload-strategy adds to the pod template of a workload that restarts, as Stakater's Reloader does: an annotation that
// names the object that changed, or one environment variable for each object.

// The strategies.
const (
	strategyAnnotations = "annotations"
	strategyEnvVars     = "env-vars"
)

const (
	// sourceAnnotation is the annotation of the strategy annotations.
	sourceAnnotation = otherDomain + "last-reloaded-from"
	// variablePrefix begins the names of the variables of the strategy env-vars.
	variablePrefix = "STAKATER_"
)

// variableOf is the name of the variable of a config object.
func variableOf(r ref) string {
	upper := func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}
	return variablePrefix + strings.Map(upper, strings.ToUpper(r.name)) + "_" + strings.ToUpper(strings.TrimSuffix(r.plural, "s"))
}

// isVariable reports whether an item of an environment is a variable of the strategy.
func isVariable(item any) bool {
	entry, _ := item.(map[string]any)
	name := world.Text(entry, "name")
	return strings.HasPrefix(name, variablePrefix) && (strings.HasSuffix(name, "_CONFIGMAP") || strings.HasSuffix(name, "_SECRET"))
}

// variablesOf returns the variables in a pod template or a pod, by their names.
func variablesOf(template world.Object) map[string]string {
	var found map[string]string
	for _, item := range items(world.Section(template, "spec"), "containers") {
		container, _ := item.(map[string]any)
		for _, entry := range items(container, "env") {
			if !isVariable(entry) {
				continue
			}
			if found == nil {
				found = map[string]string{}
			}
			variable, _ := entry.(map[string]any)
			found[world.Text(variable, "name")] = world.Text(variable, "value")
		}
	}
	return found
}

// plainSpec returns a pod spec without the variables; it shares the rest.
func plainSpec(spec world.Object) world.Object {
	containers := items(spec, "containers")
	var plain []any
	for i, item := range containers {
		container, _ := item.(map[string]any)
		env := items(container, "env")
		if !slices.ContainsFunc(env, isVariable) {
			continue
		}
		if plain == nil {
			plain = slices.Clone(containers)
		}
		plain[i] = world.With(container, slices.DeleteFunc(slices.Clone(env), isVariable), "env")
	}
	if plain == nil {
		return spec
	}
	return world.With(spec, plain, "containers")
}

// managedAnnotationsIn returns what the program writes on a pod template, as text, from the template or a pod made from it.
func managedAnnotationsIn(template world.Object, prefix string) string {
	managed, variables := managedAnnotationsOf(world.Annotations(template), prefix), variablesOf(template)
	if len(variables) == 0 {
		return managed
	}
	return managed + "\n" + sortedText(variables)
}

// reloadedByReloader reports whether a write brings a variable or an annotation of a strategy that no template of the workload had before.
func (w *workload) reloadedByReloader(c world.Commit) bool {
	if c.Sent == nil || w.object == nil {
		return false
	}
	template := world.Section(c.Sent, world.TemplatePath(w.id.plural)...)
	traces := []string{world.Text(world.Annotations(template), sourceAnnotation)}
	for name, value := range variablesOf(template) {
		traces = append(traces, name+"="+value)
	}
	return slices.ContainsFunc(traces, func(trace string) bool { return trace != "" && !w.traces[trace] })
}

// recordTraces records what a strategy has written on a template of a workload.
func (w *workload) recordTraces(template world.Object) {
	if w.traces == nil {
		w.traces = map[string]bool{}
	}
	w.traces[world.Text(world.Annotations(template), sourceAnnotation)] = true
	for name, value := range variablesOf(template) {
		w.traces[name+"="+value] = true
	}
}
