package cluster_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// form is how a store keeps objects.
type form int

const (
	shared  form = iota // as they are given
	encoded             // as bytes: numbers become floats
	typed               // as the API's own types: absent fields may become empty ones
	forms
)

var errConflict = errors.New("conflict")

// memory is a store with versions, uids and generations. Every change is given to changed.
type memory struct {
	mu      sync.Mutex
	objects map[world.Key]world.Object
	version int64
	uids    int
	form    form
	changed func(world.Commit)
	// writes counts stored changes.
	writes int
}

func newMemory() *memory {
	return &memory{form: typed, objects: map[world.Key]world.Object{}, changed: func(world.Commit) {}}
}

func (m *memory) Get(key world.Key) (world.Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[key]
	return object, ok
}

func (m *memory) List(resource world.Resource, namespace string) []world.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []world.Key
	for key := range m.objects {
		if key.Resource == resource && (namespace == "" || key.Namespace == namespace) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b world.Key) int { return strings.Compare(a.String(), b.String()) })
	var listed []world.Object
	for _, key := range keys {
		listed = append(listed, m.objects[key])
	}
	return listed
}

func (m *memory) Store(key world.Key, object world.Object) (world.Object, error) {
	return m.write(key, object, nil)
}

func (m *memory) StoreStatus(key world.Key, object world.Object) (world.Object, error) {
	m.mu.Lock()
	current, ok := m.objects[key]
	m.mu.Unlock()
	if !ok {
		return nil, errConflict
	}
	merged := maps.Clone(current)
	merged["status"] = object["status"]
	metadata := maps.Clone(world.Meta(current).Object["metadata"].(map[string]any))
	if annotations, ok := object["metadata"].(map[string]any)["annotations"]; ok {
		metadata["annotations"] = annotations
	} else {
		delete(metadata, "annotations")
	}
	metadata["resourceVersion"] = object["metadata"].(map[string]any)["resourceVersion"]
	merged["metadata"] = metadata
	return m.write(key, merged, nil)
}

func (m *memory) Remove(key world.Key) { m.erase(key, nil) }

func (m *memory) erase(key world.Key, call *world.Call) {
	m.mu.Lock()
	old, ok := m.objects[key]
	delete(m.objects, key)
	m.version++
	commit := world.Commit{At: time.Now(), Version: m.version, Key: key, Call: call, Old: old}
	m.mu.Unlock()
	if ok {
		m.writes++
		m.changed(commit)
	}
}

func (m *memory) write(key world.Key, object world.Object, call *world.Call) (world.Object, error) {
	m.mu.Lock()
	switch m.form {
	case encoded:
		object = decoded(object)
	case typed:
		object = retyped(key.Resource, object)
	}
	old, exists := m.objects[key]
	stored := maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = world.Object{}
	}
	sent, _ := metadata["resourceVersion"].(string)
	if exists && sent != "" && sent != world.Meta(old).GetResourceVersion() {
		m.mu.Unlock()
		return nil, errConflict
	}
	metadata["namespace"], metadata["name"] = key.Namespace, key.Name
	generation := int64(1)
	if exists {
		before := world.Meta(old)
		metadata["uid"], metadata["creationTimestamp"] = string(before.GetUID()), before.Object["metadata"].(map[string]any)["creationTimestamp"]
		generation = before.GetGeneration()
		if text(old["spec"]) != text(object["spec"]) {
			generation++
		}
	} else {
		m.uids++
		metadata["uid"] = "uid-" + strconv.Itoa(m.uids)
		metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	}
	m.version++
	metadata["generation"], metadata["resourceVersion"] = generation, strconv.FormatInt(m.version, 10)
	stored["metadata"] = metadata
	m.objects[key] = stored
	commit := world.Commit{At: time.Now(), Version: m.version, Key: key, Call: call, Old: old, New: stored}
	m.mu.Unlock()
	m.writes++
	m.changed(commit)
	return stored, nil
}

// retyped converts an object to the API's own type and back.
func retyped(resource world.Resource, object world.Object) world.Object {
	if resource == world.Rollouts {
		return decoded(object) // it has no type
	}
	into, err := scheme.Scheme.New(schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
	}
	if err != nil {
		panic(err)
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		panic(err)
	}
	return converted
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func decoded(object world.Object) world.Object {
	var copied world.Object
	if err := json.Unmarshal([]byte(text(object)), &copied); err != nil {
		panic(err)
	}
	return copied
}
