package referent

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

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
	// links is how many references the object has, those included that are left out.
	links int
	// leftOut are the edges of references to parents that are left out.
	leftOut []*edge
	// fault is why the references cannot be followed, unready why the object cannot be used.
	fault, unready *Hold
	// problems are references that are ignored, because they must not hold an object of another namespace.
	problems []string
}

func (f *facts) equal(o *facts) bool {
	return f.version.equal(o.version) && f.identity == o.identity && f.published == o.published &&
		f.links == o.links && slices.Equal(f.children, o.children) && slices.Equal(f.parents, o.parents) &&
		slices.Equal(f.leftOut, o.leftOut) && f.fault.equal(o.fault) && f.unready.equal(o.unready) && slices.Equal(f.problems, o.problems)
}

var hashSeed = maphash.MakeSeed()

// hash returns a hash of the facts of an object that nothing holds, in this process.
func (f *facts) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	maphash.WriteComparable(&h, [3]string{f.version.rule, f.version.text, f.published})
	maphash.WriteComparable(&h, f.identity)
	maphash.WriteComparable(&h, [6]int{f.links, len(f.version.sums), len(f.children), len(f.parents), len(f.leftOut), len(f.problems)})
	writeAll(&h, f.version.sums)
	writeAll(&h, f.children)
	writeAll(&h, f.parents)
	writeAll(&h, f.leftOut)
	writeAll(&h, f.problems)
	return h.Sum64()
}

func writeAll[T comparable](h *maphash.Hash, all []T) {
	for _, one := range all {
		maphash.WriteComparable(h, one)
	}
}

// Object is what counts of an object, for a Graph under any digest keys. Its size does not depend on that of the content.
type Object struct {
	resource *Resource
	key      Key
	facts    facts // without version
	own      own
	// annotation is the published digest, where it is written from here.
	annotation string
}

// Key is that of the object.
func (o *Object) Key() Key { return o.key }

// Equal reports whether the same counts of another object of the resource.
func (o *Object) Equal(other *Object) bool {
	return o.key == other.key && o.own == other.own && o.annotation == other.annotation && o.facts.equal(&other.facts)
}

// References is how many references the object has, which are kept.
func (o *Object) References() int { return len(o.facts.children) + len(o.facts.parents) }

// WithoutReferences is the object without its references. It counts them and is held, whatever the namespace has. So are the objects that
// can be its parents, perhaps in another namespace: they must not take the object for gone.
func (o *Object) WithoutReferences() *Object {
	bare := *o
	bare.facts.children, bare.facts.parents = nil, nil
	for _, link := range o.facts.parents {
		if !slices.Contains(bare.facts.leftOut, link.edge) {
			bare.facts.leftOut = append(bare.facts.leftOut, link.edge)
		}
	}
	bare.facts.fault = &Hold{
		Reason: TooMany, Node: o.key, Detail: fmt.Sprintf("its references are left out since the namespace had more than %d", MaxLinks),
	}
	return &bare
}

// Read extracts what counts of an object of the resource. It keeps no part of it.
func (r *Resource) Read(object *unstructured.Unstructured) *Object {
	o := &Object{resource: r, key: r.Key(object.GetNamespace(), object.GetName()), own: r.self.read(r.withoutDigest(object))}
	o.facts.unready = r.ready.check(o.key, object)
	if r.identified {
		o.facts.identity = identify(object)
	}
	if r.Published {
		o.facts.published, o.facts.fault = r.checksum(o.key, object)
	}
	if r.Publish {
		o.annotation, _ = r.checksum(o.key, object) // whatever it is, it differs
	}
	reader := &linkReader{key: o.key, facts: &o.facts, added: map[link]struct{}{}}
	for _, edge := range slices.Concat(r.refs, r.points) {
		reader.follow(edge, object.Object)
	}
	o.facts.links = len(o.facts.children) + len(o.facts.parents)
	return o
}

// maxChecksum is how many bytes the checksum of another controller can have: it is kept in memory.
const maxChecksum = 1024

// checksum is the annotation with a digest. One that is too long is not kept.
func (r *Resource) checksum(key Key, object *unstructured.Unstructured) (string, *Hold) {
	value := object.GetAnnotations()[r.Annotation]
	if len(value) > maxChecksum {
		return "too long", &Hold{
			Reason: Invalid, Node: key,
			Detail: fmt.Sprintf("annotation %s has %d bytes: at most %d are a checksum", r.Annotation, len(value), maxChecksum),
		}
	}
	return strings.Clone(value), nil
}

// under are the facts of an object under digest keys.
func (o *Object) under(keys []digest.Key) *facts {
	f := o.facts
	f.version = o.resource.self.version(o.own, keys)
	return &f
}
