package referent

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// facts are what counts of an object. What does not count is not kept, so that a change of it changes nothing.
type facts struct {
	version version
	// identity is what crc32 reads; empty where no parent has that algorithm.
	identity identity
	// published is the digest that another reconciler wrote; empty if it is computed.
	published string
	children  []link
	parents   []link
	// fault is why the references cannot be followed, unready why the object cannot be used.
	fault, unready *Hold
	// problems are references that are ignored, because they must not hold an object of another namespace.
	problems []string
}

func (f *facts) equal(o *facts) bool {
	return f.version.equal(o.version) && f.identity == o.identity && f.published == o.published &&
		slices.Equal(f.children, o.children) && slices.Equal(f.parents, o.parents) &&
		f.fault.equal(o.fault) && f.unready.equal(o.unready) && slices.Equal(f.problems, o.problems)
}

// read extracts the facts of an object.
func (r *Resource) read(object *unstructured.Unstructured, keys []digest.Key) *facts {
	key := r.Key(object.GetNamespace(), object.GetName())
	f := &facts{version: r.self.version(object, keys), unready: r.ready.check(key, object)}
	if r.identified {
		f.identity = identify(object)
	}
	if r.Published {
		f.published = object.GetAnnotations()[r.Annotation]
	}
	reader := &linkReader{key: key, facts: f}
	for _, edge := range slices.Concat(r.refs, r.points) {
		reader.follow(edge, object.Object)
	}
	return f
}
