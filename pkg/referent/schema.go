package referent

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// Schema is a valid configuration of the chain. It is immutable and may be shared by goroutines. The zero value has no
// resources.
type Schema struct {
	resources []*Resource // config objects not included
	byName    map[schema.GroupResource]*Resource
}

// Resources returns the custom resources, in the order of the configuration.
func (s *Schema) Resources() []*Resource { return slices.Clone(s.resources) }

// Resource returns the resource of that name, ConfigMaps and Secrets included; false if the chain does not know it. A nil Schema knows
// none.
func (s *Schema) Resource(name schema.GroupResource) (*Resource, bool) {
	if s == nil {
		return nil, false
	}
	resource, ok := s.byName[name]
	return resource, ok
}

// ParseKey reads the text form of a Key, RESOURCE.GROUP/NAME, as users write it on a workload in that namespace. The
// error says which resources are known.
func (s *Schema) ParseKey(namespace, text string) (Key, error) {
	name, object, found := strings.Cut(text, "/")
	if !found {
		return Key{}, fmt.Errorf("%s is not of the form resource.group/name, such as certificates.cert-manager.io/web", reference.Quote(text))
	}
	resource, ok := s.byName[schema.ParseGroupResource(name)]
	if !ok || resource.builtin {
		return Key{}, fmt.Errorf("the configuration has no resource %s: known are %s", reference.Quote(name), s.names())
	}
	if err := reference.ValidName(object); err != nil {
		return Key{}, err
	}
	return resource.Key(namespace, object), nil
}

// Ignore removes the references to the config objects of some kinds, which an installation does not handle, and returns where the
// configuration has them. Nothing below such a reference is read, or is in a digest. It is for a Schema that is not shared yet.
func (s *Schema) Ignore(kinds ...reference.Kind) []string {
	var ignored []string
	for _, resource := range s.resources {
		resource.refs = slices.DeleteFunc(resource.refs, func(e *edge) bool {
			without := e.to.builtin && slices.ContainsFunc(kinds, func(kind reference.Kind) bool { return kind.Resource() == e.to.ID })
			if without {
				ignored = append(ignored, e.at+" (to: "+e.to.ID+")")
			}
			return without
		})
	}
	return ignored
}

func (s *Schema) names() string {
	if len(s.resources) == 0 {
		return "none"
	}
	return reference.List(s.resources, MaxResources)
}

// Resource is one resource of a Schema. It is immutable.
type Resource struct {
	ID            string
	GVR           schema.GroupVersionResource
	ClusterScoped bool
	// Publish says that the digest is written to the Annotation, Published that it is read from there.
	Publish, Published bool
	Annotation         string
	// CRC32 says that the digest is that of Kroxylicious.
	CRC32 bool

	builtin   bool // a ConfigMap or a Secret
	at        string
	workloads workloadsRule
	ready     readyRule
	self      selfRule
	refs      []*edge
	referrers []*edge
	// points are the referrers of other resources which objects of this one can be.
	points []*edge
	// identified says that the uid and the version of an object count, because a parent has the algorithm crc32.
	identified bool
}

// Key is that of an object of the resource; the namespace of a cluster-scoped one does not count.
func (r *Resource) Key(namespace, name string) Key {
	if r.ClusterScoped {
		namespace = ""
	}
	return Key{Group: r.GVR.Group, Resource: r.GVR.Resource, Namespace: namespace, Name: name}
}

// String is the name of the resource, with its group.
func (r *Resource) String() string { return r.GVR.GroupResource().String() }

// edge is a reference between two resources. from refers to to; which one is the parent, inverse says.
type edge struct {
	from, to *Resource
	// inverse says that the child refers to the parent.
	inverse bool
	at      string
	// base leads to what has the field name, and perhaps namespace. Where it is no field that names are in, base leads to
	// the names.
	base            jsonpath.Path
	name, namespace string
	kind            string // empty: any
	optional        bool
	namespaces      []string
}

// allows reports whether the edge may cross from one namespace to another. A cluster-scoped target is in no namespace;
// a cluster-scoped source is in none either, so that every target in a namespace must be allowed.
func (e *edge) allows(from, to string) bool {
	if from == to {
		return true
	}
	child := to
	if e.inverse {
		child = from
	}
	return child == "" || slices.Contains(e.namespaces, "*") || slices.Contains(e.namespaces, child)
}
