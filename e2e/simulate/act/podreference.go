package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// EditPodReferences is the act that changes which config objects the pod template of a workload references. It has no weight: simulate
// draws it from a random stream of its own.
const EditPodReferences = "edit-pod-references"

const (
	byVariable, byInitContainer     = "env", "init"
	byVolume, byItem                = "projected", "projected-key"
	referenceVariable               = "REFERENCE"
	referenceVolume, initializer    = "references", "setup"
	makeRequired, makeOptional      = "required", "optional"
	flipOptionality, dropReferences = "flipped", "absent"
)

func podReferenceActs() []act {
	return []act{{
		name: EditPodReferences, on: mostlyAfter(onWorkload(workloadResources()...), EditPodReferences),
		with: []parameter{
			oneOf("in", byVariable, byVariable, byInitContainer, byVolume, byItem),
			required("how", isOneOf(makeRequired, makeOptional, flipOptionality, dropReferences),
				pick(makeRequired, makeRequired, makeOptional, flipOptionality, flipOptionality, dropReferences)),
			required("to", isKeyOfConfig, pick("configmaps/app/greeting", "configmaps/app/added", "configmaps/extra/level",
				"configmaps/late/greeting", "secrets/db/password", "secrets/tls/tls.key")),
		},
		words: "user edits the reference of the pods of {on} to {to} (in: {in}): {how}",
		do:    editPodReferences,
	}}
}

func isKeyOfConfig(value string) error {
	_, _, err := parseKeyOfConfig(value)
	return err
}

// parseKeyOfConfig reads e.g. "configmaps/app/greeting", a key of an object in the namespace of the workload.
func parseKeyOfConfig(value string) (to source, key string, err error) {
	parts := strings.Split(value, "/")
	if len(parts) != 3 {
		return source{}, "", fmt.Errorf("%q does not have the form RESOURCE/NAME/KEY", value)
	}
	object, err := parseConfig(parts[0]+"/"+shop+"/"+parts[1], configResources())
	if err == nil {
		err = isDataKey(parts[2])
	}
	return source{resource: object.Resource, name: object.Name}, parts[2], err
}

// editPodReferences is "kubectl edit" of one reference of the pod template.
func editPodReferences(ctx context.Context, c client, s step) error {
	name, err := containerName(s.key)
	if err != nil {
		return err
	}
	path := append(world.PodPath(s.key.Resource.Plural), "spec")
	return c.update(ctx, s.key, "kubectl-edit", func(object world.Object) error {
		spec := world.Section(object, path...)
		container, _ := cut(spec["containers"], name)
		if container == nil {
			return skip("%s has no container %s", s.key, name)
		}
		return s.editReference(spec, container)
	})
}

// editReference changes the one reference that the act keeps in each part of a pod spec.
func (s step) editReference(spec, container world.Object) error {
	owner, field, entry := spec, "volumes", s.volume()
	switch s.text("in") {
	case byVariable:
		owner, field, entry = container, "env", s.variable()
	case byInitContainer:
		field, entry = "initContainers", s.initContainer()
	}
	old, rest := cut(owner[field], entry["name"])
	switch how := s.text("how"); {
	case old == nil && (how == flipOptionality || how == dropReferences):
		return skip("%s has no %v", s.key, entry["name"])
	case how == flipOptionality:
		flipOptional(old)
		return nil
	case how == dropReferences:
		setList(owner, field, rest)
	default:
		setList(owner, field, append(rest, entry))
	}
	if field == "volumes" {
		s.mount(container)
	}
	return nil
}

// mount keeps the mount of the volume as long as there is the volume.
func (s step) mount(container world.Object) {
	_, mounts := cut(container["volumeMounts"], referenceVolume)
	if s.text("how") != dropReferences {
		mounts = append(mounts, world.Object{"name": referenceVolume, "mountPath": "/etc/" + referenceVolume})
	}
	setList(container, "volumeMounts", mounts)
}

// reference is what the pod spec says of the object, with the key that is meant, and whether it is a Secret.
func (s step) reference() (reference world.Object, key string, secret bool) {
	to, key, _ := parseKeyOfConfig(s.text("to")) // it was checked
	to.optional = s.text("how") == makeOptional
	return to.reference("name"), key, to.resource == world.Secrets
}

func (s step) variable() world.Object {
	reference, key, secret := s.reference()
	field := "configMapKeyRef"
	if secret {
		field = "secretKeyRef"
	}
	reference["key"] = key
	return world.Object{"name": referenceVariable, "valueFrom": world.Object{field: reference}}
}

// initContainer has the values that the API server would fill in.
func (s step) initContainer() world.Object {
	return world.Object{
		"name": initializer, "image": "example.com/setup:1", "imagePullPolicy": "IfNotPresent", "env": []any{s.variable()},
		"resources": world.Object{}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	}
}

func (s step) volume() world.Object {
	reference, key, secret := s.reference()
	field := "configMap"
	if secret {
		field = "secret"
	}
	if s.text("in") == byItem {
		reference["items"] = []any{world.Object{"key": key, "path": key}}
	}
	return world.Object{"name": referenceVolume, "projected": world.Object{
		"sources": []any{world.Object{field: reference}}, "defaultMode": int64(0o644),
	}}
}

// cut returns the item of a name, nil if there is none, and the others.
func cut(list, name any) (found world.Object, others []any) {
	items, _ := list.([]any)
	for _, item := range items {
		if one, ok := item.(world.Object); ok && one["name"] == name {
			found = one
			continue
		}
		others = append(others, item)
	}
	return found, others
}

// setList sets a list, which is left out where it is empty.
func setList(owner world.Object, field string, items []any) {
	if len(items) == 0 {
		delete(owner, field)
		return
	}
	owner[field] = items
}

// flipOptional makes each required reference below a value optional, and each optional one required.
func flipOptional(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			flipOptional(item)
		}
	case world.Object:
		for field, child := range v {
			reference, ok := child.(world.Object)
			if !ok || !slices.Contains([]string{"configMapKeyRef", "secretKeyRef", "configMap", "secret"}, field) {
				flipOptional(child)
				continue
			}
			if reference["optional"] == true {
				delete(reference, "optional")
			} else {
				reference["optional"] = true
			}
		}
	}
}
