package strategy

import (
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Users says which container of a pod template uses each config object.
type Users struct {
	byRef map[reference.Ref]string
	first string
}

// UsersOf reads them from a raw pod template. As in Reloader, the first of these decides:
//
//   - the first container that mounts a volume with the object;
//   - where an init container mounts one, the first container;
//   - the first container with a reference in its environment;
//   - where an init container has one, the first container.
func UsersOf(template map[string]any) Users {
	regular, initial := containers(template, "containers"), containers(template, "initContainers")
	u := Users{byRef: map[reference.Ref]string{}, first: firstName(regular)}
	volumes := containers(template, "volumes")
	mounting := mounters(regular)
	for _, volume := range volumes {
		if container, mounted := mounting[name(volume)]; mounted {
			u.add("volumes", volume, container)
		}
	}
	mounting = mounters(initial)
	for _, volume := range volumes {
		if _, mounted := mounting[name(volume)]; mounted {
			u.add("volumes", volume, u.first)
		}
	}
	for _, container := range regular {
		u.add("containers", container, name(container))
	}
	for _, container := range initial {
		u.add("containers", container, u.first)
	}
	return u
}

// Of returns the name of the container: the first one for an object that none uses, and the empty name if there is no
// container at all.
func (u Users) Of(ref reference.Ref) string {
	if container, used := u.byRef[ref]; used {
		return container
	}
	return u.first
}

// add notes the user of what an item of a list of the pod spec refers to, where none was found before.
func (u Users) add(list string, item map[string]any, container string) {
	for _, r := range reference.FromPodSpec(map[string]any{list: []any{item}}) {
		if _, found := u.byRef[r.Ref]; !found {
			u.byRef[r.Ref] = container
		}
	}
}

// mounters returns the name of the first container that mounts a volume, by the volume's name. A pod template that was not validated yet
// may have any number of each.
func mounters(containers []map[string]any) map[string]string {
	first := map[string]string{}
	for _, container := range containers {
		list, _ := container["volumeMounts"].([]any)
		for _, mount := range list {
			m, _ := mount.(map[string]any)
			if _, found := first[name(m)]; !found && name(m) != "" {
				first[name(m)] = name(container)
			}
		}
	}
	return first
}

func name(m map[string]any) string {
	s, _ := m["name"].(string)
	return s
}

func firstName(containers []map[string]any) string {
	if len(containers) == 0 {
		return ""
	}
	return name(containers[0])
}
