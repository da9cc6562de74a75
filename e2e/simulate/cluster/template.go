package cluster

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The labels by which controllers know their pods.
const (
	templateHashLabel = "pod-template-hash"
	revisionHashLabel = "controller-revision-hash"
)

// form is a pod template in the form in which templates are compared. The template is kept so that its address stays its
// own, and because comparing two templates is cheaper than converting one.
type form struct {
	template world.Object
	text     string
}

// printOf returns the canonical form of the template of an object: the JSON of the typed template without pod-template-hash.
// Equal forms mean what EqualIgnoreHash of the Deployment controller and the equality of ControllerRevisions mean: nil and
// empty are the same, quantities are compared by value, a pointer to nothing differs from none.
func (c *Cluster) printOf(key world.Key, template world.Object) string {
	c.mu.Lock()
	known, ok := c.prints[key]
	c.mu.Unlock()
	if ok && world.Same(known.template, template) {
		return known.text
	}
	made := form{template, known.text}
	if !ok || !equal(known.template, template) {
		made.text = canonical(template)
	}
	c.mu.Lock()
	c.prints[key] = made
	c.mu.Unlock()
	return made.text
}

func canonical(template world.Object) string {
	var value any = template
	typed := corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &typed); err == nil {
		delete(typed.Labels, templateHashLabel)
		value = &typed
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// hashOf returns a short name for a text, in the alphabet that Kubernetes uses for such names. The collision count is that
// of the status of the workload.
func hashOf(text string, collisions int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	if collisions > 0 {
		_, _ = h.Write([]byte(strconv.Itoa(collisions)))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// plus returns the labels with one more.
func plus(labels world.Object, name string, value any) world.Object {
	added := make(world.Object, len(labels)+1)
	maps.Copy(added, labels)
	added[name] = value
	return added
}

// newPod returns the pod that a controller makes from a template. Labels, annotations and finalizers are the template's.
func newPod(o owner, template world.Object, name, node string) world.Object {
	metadata := world.Object{
		"name": name, "namespace": o.key.Namespace, "ownerReferences": []any{o.reference()},
	}
	for _, copied := range []string{"labels", "annotations", "finalizers"} {
		if value := world.Field(template, "metadata", copied); value != nil {
			metadata[copied] = value
		}
	}
	return world.Object{
		"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
		"spec":   world.With(world.Section(template, "spec"), node, "nodeName"),
		"status": world.Object{"phase": "Pending"},
	}
}

// freeName returns a name for a new pod of an owner, as the API server makes it from generateName, but from a counter.
func (c *Cluster) freeName(o owner) string {
	prefix := o.key.Name
	if len(prefix) > 57 {
		prefix = prefix[:57]
	}
	for {
		c.suffixes[o.key.String()]++
		name := prefix + "-" + suffix(o.key.String(), c.suffixes[o.key.String()])
		if _, taken := c.store.Get(world.Key{Resource: world.Pods, Namespace: o.key.Namespace, Name: name}); !taken {
			return name
		}
	}
}

// suffix returns five characters.
func suffix(text string, count int) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text + "/" + strconv.Itoa(count)))
	return rand.SafeEncodeString(strconv.FormatUint(h.Sum64()%90000+10000, 10))
}

// nodeFor returns the node with the fewest of these pods.
func nodeFor(pods []world.Object) string {
	best, least := nodes[0], len(pods)+1
	for _, node := range nodes {
		count := 0
		for _, pod := range pods {
			if world.Text(pod, "spec", "nodeName") == node {
				count++
			}
		}
		if count < least {
			best, least = node, count
		}
	}
	return best
}
