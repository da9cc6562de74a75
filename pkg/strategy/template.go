package strategy

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// environment is what a container has in env.
type environment struct {
	container string
	// at is the position of the container in the pod spec.
	at int
	// entries are all variables. They are nil where env is absent or null.
	entries []any
	// empty says that env is there, and has no variables.
	empty bool
	// fields are those of the entries that Reloader's strategies write.
	fields []Variable
}

// mostVariables is how many variables of Reloader's strategies are read of a pod template: one for each object that a workload can track.
// Each is compared with the others, and there is space for a hundred thousand in a request.
const mostVariables = reference.MaxTracked

// environments returns those of the containers of a pod template, in their order. One that can hold no variable is left
// out: it has no name or that of another, or its env is no list. Reloader writes to no init container. All are left out where there are
// more than mostVariables.
func environments(template map[string]any) []environment {
	var all []environment
	names, variables := map[string]bool{}, 0
	for i, container := range containers(template, "containers") {
		name, _ := container["name"].(string)
		env, present := container["env"]
		entries, isList := env.([]any)
		if name == "" || names[name] || !isList && env != nil {
			continue
		}
		names[name] = true
		e := environment{container: name, at: i, entries: entries, empty: present && len(entries) == 0}
		for index, entry := range entries {
			if v, ok := variable(entry); ok {
				v.Container, v.Index = name, index
				e.fields = append(e.fields, v)
			}
		}
		if variables += len(e.fields); variables > mostVariables {
			return nil
		}
		all = append(all, e)
	}
	return all
}

// variable reads an entry of an environment; false where it is not one that Reloader's strategies write.
func variable(entry any) (Variable, bool) {
	m, _ := entry.(map[string]any)
	name, _ := m["name"].(string)
	value, _ := m["value"].(string)
	if len(m) != 2 || value == "" || !isVariable(name) {
		return Variable{}, false
	}
	return Variable{Name: name, Value: value}, true
}

// containers returns a list of containers of a pod template. Items that are no objects are nil.
func containers(template map[string]any, field string) []map[string]any {
	spec, _ := template["spec"].(map[string]any)
	list, _ := spec[field].([]any)
	all := make([]map[string]any, len(list))
	for i, item := range list {
		all[i], _ = item.(map[string]any)
	}
	return all
}

// Read returns the Fields of a raw pod template.
func Read(template map[string]any) Fields {
	var f Fields
	metadata, _ := template["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	f.From, _ = annotations[Annotation].(string)
	for _, e := range environments(template) {
		f.Variables = append(f.Variables, e.fields...)
	}
	return f
}

// Without returns the template without its variables, as a copy where it has some. An environment of nothing else, and one that is empty
// anyway, is left out, since to the API it is none. The annotation stays.
func Without(template map[string]any) map[string]any {
	var list []any
	for _, e := range environments(template) {
		if len(e.fields) == 0 && !e.empty {
			continue
		}
		if list == nil {
			spec := maps.Clone(template["spec"].(map[string]any)) //nolint:forcetypeassert // it has containers
			list = slices.Clone(spec["containers"].([]any))       //nolint:forcetypeassert // likewise
			spec["containers"] = list
			template = maps.Clone(template)
			template["spec"] = spec
		}
		container := maps.Clone(list[e.at].(map[string]any)) //nolint:forcetypeassert // it has a name
		list[e.at] = container
		if rest := e.rest(); len(rest) > 0 {
			container["env"] = rest
		} else {
			delete(container, "env")
		}
	}
	return template
}

// rest returns the entries that are not of Reloader's strategies.
func (e environment) rest() []any {
	return slices.DeleteFunc(slices.Clone(e.entries), func(entry any) bool {
		_, ours := variable(entry)
		return ours
	})
}

// On returns the Fields as they are once they are on a template in place of its own: without the variables of containers
// that it lacks, and at the nearest positions that its environments have, each at one of its own. What is no variable of a
// strategy, as a hand edit of what is stored can have it, is left out.
func (f Fields) On(template map[string]any) Fields {
	put, variables := Fields{From: f.From}, f.byContainer()
	for _, e := range environments(template) {
		free, length := 0, len(e.entries)-len(e.fields)
		for _, v := range variables[e.container] {
			if v.Value == "" || !isVariable(v.Name) {
				continue
			}
			v.Index = min(max(v.Index, free), length)
			free = v.Index + 1
			length++
			put.Variables = append(put.Variables, v)
		}
	}
	return put
}

// byContainer returns the variables by their containers, each sorted by the positions.
func (f Fields) byContainer() map[string][]Variable {
	parts := map[string][]Variable{}
	for _, v := range f.Variables {
		parts[v.Container] = append(parts[v.Container], v)
	}
	for _, part := range parts {
		slices.SortStableFunc(part, func(a, b Variable) int { return a.Index - b.Index })
	}
	return parts
}
