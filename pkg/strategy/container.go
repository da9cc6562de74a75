package strategy

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Users says which container of a pod template uses each config object.
type Users struct {
	byRef map[reference.Ref]string
	first string
}

// UsersOf reads them from a raw pod template, in the order of Reloader: the first container that mounts a volume with the
// object, else, where an init container does so, the first container; else the first container with a reference in its
// environment; else, where an init container has one, the first container.
func UsersOf(template map[string]any) Users {
	regular, initial := containers(template, "containers"), containers(template, "initContainers")
	u := Users{byRef: map[reference.Ref]string{}, first: firstName(regular)}
	volumes := containers(template, "volumes")
	for _, volume := range volumes {
		if i := slices.IndexFunc(regular, mounts(volume)); i >= 0 {
			u.add("volumes", volume, name(regular[i]))
		}
	}
	for _, volume := range volumes {
		if slices.ContainsFunc(initial, mounts(volume)) {
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

// mounts returns whether a container mounts a volume.
func mounts(volume map[string]any) func(map[string]any) bool {
	return func(container map[string]any) bool {
		list, _ := container["volumeMounts"].([]any)
		return slices.ContainsFunc(list, func(mount any) bool {
			m, _ := mount.(map[string]any)
			return name(m) != "" && name(m) == name(volume)
		})
	}
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
