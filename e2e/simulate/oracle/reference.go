package oracle

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// ref is what a workload lists: an object in its own namespace.
type ref struct{ plural, name string }

// String returns e.g. "configmap/app".
func (r ref) String() string { return strings.TrimSuffix(r.plural, "s") + "/" + r.name }

func compareRefs(a, b ref) int {
	if order := strings.Compare(a.plural, b.plural); order != 0 {
		return order
	}
	return strings.Compare(a.name, b.name)
}

// listed reads the two lists of a workload: comma-separated, trimmed, without duplicates and empty items, sorted.
func listed(annotations world.Object, prefix string) []ref {
	var refs []ref
	for _, list := range []string{configMapList, secretList} {
		for _, name := range world.Items(world.Text(annotations, prefix+list)) {
			refs = append(refs, ref{list, name})
		}
	}
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs)
}

// need says how much pods need an object in order to start.
type need int

const (
	optional need = iota
	// unsure is what kubelets start without, but what a program may well take for required.
	unsure
	required
)

// needs returns the objects that a pod spec mentions.
func needs(spec world.Object) map[ref]need {
	found := map[ref]need{}
	add := func(plural, name string, how need) {
		if name != "" {
			found[ref{plural, name}] = max(how, found[ref{plural, name}])
		}
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range world.Objects(spec, field) {
			containerNeeds(container, add)
		}
	}
	for _, volume := range world.Objects(spec, "volumes") {
		volumeNeeds(volume, add)
	}
	for _, secret := range world.Objects(spec, "imagePullSecrets") {
		add("secrets", world.Text(secret, "name"), unsure)
	}
	return found
}

func containerNeeds(container world.Object, add func(string, string, need)) {
	for _, source := range world.Objects(container, "envFrom") {
		addSource(world.Section(source, "configMapRef"), "configmaps", "name", add)
		addSource(world.Section(source, "secretRef"), "secrets", "name", add)
	}
	for _, variable := range world.Objects(container, "env") {
		from := world.Section(variable, "valueFrom")
		addSource(world.Section(from, "configMapKeyRef"), "configmaps", "name", add)
		addSource(world.Section(from, "secretKeyRef"), "secrets", "name", add)
	}
}

func volumeNeeds(volume world.Object, add func(string, string, need)) {
	known := map[string]bool{"name": true, "configMap": true, "secret": true, "projected": true, "emptyDir": true, "hostPath": true}
	addSource(world.Section(volume, "configMap"), "configmaps", "name", add)
	addSource(world.Section(volume, "secret"), "secrets", "secretName", add)
	for _, source := range world.Objects(volume, "projected", "sources") {
		addSource(world.Section(source, "configMap"), "configmaps", "name", add)
		addSource(world.Section(source, "secret"), "secrets", "name", add)
	}
	for field, value := range volume {
		source, _ := value.(map[string]any)
		if known[field] || source == nil {
			continue
		}
		// Drivers of storage name their Secrets in several ways: no kubelet needs them to start, but they matter.
		for _, name := range []string{"secretRef", "nodePublishSecretRef"} {
			add("secrets", world.Text(world.Section(source, name), "name"), unsure)
		}
		add("secrets", world.Text(source, "secretName"), unsure)
	}
}

func addSource(source world.Object, plural, nameField string, add func(string, string, need)) {
	how := required
	if source["optional"] == true {
		how = optional
	}
	add(plural, world.Text(source, nameField), how)
}
