package referent

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Key identifies a node: an object of a resource, in whatever version it is read.
type Key struct {
	Group, Resource string
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
}

// ConfigKey is the Key of a ConfigMap or a Secret.
func ConfigKey(namespace string, ref reference.Ref) Key {
	return Key{Resource: ref.Kind.Resource(), Namespace: namespace, Name: ref.Name}
}

// Ref is the inverse of ConfigKey; false for a custom resource.
func (k Key) Ref() (reference.Ref, bool) {
	for _, kind := range reference.Kinds() {
		if k.Group == "" && k.Resource == kind.Resource() {
			return reference.Ref{Kind: kind, Name: k.Name}, true
		}
	}
	return reference.Ref{}, false
}

// GroupResource is the resource without its version.
func (k Key) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// String is the form that users write: kafkaproxies.kroxylicious.io/my-proxy, or secret/tls for a config object. Without a name it is the
// resource.
func (k Key) String() string {
	if ref, ok := k.Ref(); ok {
		return ref.String()
	}
	if k.Name == "" {
		return k.GroupResource().String()
	}
	return k.GroupResource().String() + "/" + k.Name
}

// In is String, and the namespace where it is not the given one.
func (k Key) In(namespace string) string {
	if k.Namespace == namespace || k.Namespace == "" {
		return k.String()
	}
	return k.String() + " in namespace " + k.Namespace
}

// Word is In as one word, such as secret/shop/tls: a last-reload has words.
func (k Key) Word(namespace string) string {
	if k.In(namespace) == k.String() {
		return k.String()
	}
	kind, name, _ := strings.Cut(k.String(), "/")
	return kind + "/" + k.Namespace + "/" + name
}

// Compare orders by resource, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Group, o.Group),
		cmp.Compare(k.Resource, o.Resource),
		cmp.Compare(k.Namespace, o.Namespace),
		cmp.Compare(k.Name, o.Name),
	)
}
