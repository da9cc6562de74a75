package cluster

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// requirement is a configuration object, or a key of one, without which a pod does not start.
type requirement struct {
	object world.Key
	// item is a key of its data, empty for the object as a whole.
	item string
	// mounted means that a volume needs it; otherwise the environment does.
	mounted bool
}

// requirements returns what a pod needs to start, in the order of the kubelet: volumes first. Optional references are left
// out, as are image pull secrets, without which the kubelet tries anyway.
func requirements(namespace string, spec world.Object) []requirement {
	r := requirer{namespace: namespace}
	for _, v := range world.Objects(spec, "volumes") {
		r.volume(v, "secretName")
		for _, s := range world.Objects(v, "projected", "sources") {
			r.volume(s, "name")
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, one := range world.Objects(spec, list) {
			r.environment(one)
		}
	}
	return r.found
}

type requirer struct {
	namespace string
	found     []requirement
}

// add notes a reference to an object unless it is optional. The name of a Secret is in another field in volumes.
func (r *requirer) add(resource world.Resource, reference world.Object, name string, keys []any, mounted bool) {
	if reference == nil || truth(reference, "optional") || world.Text(reference, name) == "" {
		return
	}
	key := world.Key{Resource: resource, Namespace: r.namespace, Name: world.Text(reference, name)}
	if len(keys) == 0 {
		r.found = append(r.found, requirement{key, "", mounted})
	}
	for _, item := range keys {
		k, _ := item.(string)
		r.found = append(r.found, requirement{key, k, mounted})
	}
}

func (r *requirer) volume(source world.Object, secretName string) {
	for _, kind := range []struct {
		resource    world.Resource
		field, name string
	}{{world.ConfigMaps, "configMap", "name"}, {world.Secrets, "secret", secretName}} {
		reference := world.Section(source, kind.field)
		var keys []any
		for _, i := range world.Objects(reference, "items") {
			keys = append(keys, i["key"])
		}
		r.add(kind.resource, reference, kind.name, keys, true)
	}
}

func (r *requirer) environment(container world.Object) {
	for _, s := range world.Objects(container, "envFrom") {
		r.add(world.ConfigMaps, world.Section(s, "configMapRef"), "name", nil, false)
		r.add(world.Secrets, world.Section(s, "secretRef"), "name", nil, false)
	}
	for _, v := range world.Objects(container, "env") {
		for _, from := range []struct {
			resource world.Resource
			field    string
		}{{world.ConfigMaps, "configMapKeyRef"}, {world.Secrets, "secretKeyRef"}} {
			reference := world.Section(v, "valueFrom", from.field)
			r.add(from.resource, reference, "name", []any{reference["key"]}, false)
		}
	}
}

// missing returns what is not met.
func (c *Cluster) missing(namespace string, spec world.Object) []requirement {
	if c.options.StartBlocked {
		return nil
	}
	return slices.DeleteFunc(requirements(namespace, spec), c.met)
}

// met reports whether the object exists and has the key. The environment reads no binaryData.
func (c *Cluster) met(r requirement) bool {
	object, ok := c.store.Get(r.object)
	if !ok || r.item == "" {
		return ok
	}
	for _, part := range []string{"data", "stringData", "binaryData"} {
		if _, has := world.Section(object, part)[r.item]; has && (part != "binaryData" || r.mounted) {
			return true
		}
	}
	return false
}
