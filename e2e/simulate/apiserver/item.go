package apiserver

import (
	"bytes"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// item is one version of an object, or its deletion. It never changes. The encodings are made when they are first wanted
// and kept, since each of many clients reads the same version.
type item struct {
	kind    *kind
	version int64
	typed   object
	// gone marks a deletion; typed is then the last state, with the version of the deletion.
	gone bool
	// spec and status are nil for kinds that have no generation. What does not change between two versions is the same
	// section in both, with its encodings.
	spec, status *section

	raw      atomic.Pointer[[]byte]
	text     atomic.Pointer[[]byte]
	metaText atomic.Pointer[[]byte]
	metaRaw  atomic.Pointer[[]byte]
	values   atomic.Pointer[world.Object]
}

// section is the spec or the status of an object.
type section struct {
	part   message
	raw    []byte
	text   atomic.Pointer[[]byte]
	values atomic.Pointer[world.Object]
}

// newItem takes over an object that nothing else changes any more. What it has in common with the items given, of which any
// may be nil, it shares with them.
func newItem(k *kind, o object, from ...*item) *item {
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	i := &item{kind: k, typed: o}
	if k.spec == nil {
		return i
	}
	spec, status := k.spec(o), k.status(o)
	specRaw, statusRaw := marshal(spec), marshal(status)
	for _, f := range from {
		if f != nil && i.spec == nil && bytes.Equal(specRaw, f.spec.raw) {
			i.spec = f.spec
		}
		if f != nil && i.status == nil && bytes.Equal(statusRaw, f.status.raw) {
			i.status = f.status
		}
	}
	if i.spec == nil {
		i.spec = &section{part: spec, raw: specRaw}
	}
	if i.status == nil {
		i.status = &section{part: status, raw: statusRaw}
	}
	return i
}

// stamp gives an item that is not shared yet its version, and the text of it that clients see.
func (i *item) stamp(version int64, text string) *item {
	i.version = version
	i.meta().ResourceVersion = text
	i.forget()
	return i
}

// forget drops what was encoded of the metadata, after a change.
func (i *item) forget() {
	for _, at := range []*atomic.Pointer[[]byte]{&i.raw, &i.text, &i.metaText, &i.metaRaw} {
		at.Store(nil)
	}
	i.values.Store(nil)
}

// deletion returns the item that ends an object.
func (i *item) deletion(version int64, text string) *item {
	gone := i.at(version, text)
	gone.gone = true
	return gone
}

// at returns the same content under another version, as a watch shows an object that leaves its selection.
func (i *item) at(version int64, text string) *item {
	return newItem(i.kind, clone(i.typed), i).stamp(version, text)
}

func (i *item) meta() *metav1.ObjectMeta { return metaOf(i.typed) }

// live reports whether there is an object.
func (i *item) live() bool { return i != nil && !i.gone }

// same reports whether two items have the same content, their versions included.
func (i *item) same(other *item) bool {
	if i.spec != other.spec || i.status != other.status {
		return false // equal sections are one
	}
	if i.spec == nil {
		return bytes.Equal(i.protobuf(), other.protobuf())
	}
	return bytes.Equal(i.metadataRaw(), other.metadataRaw())
}

// object returns the decoded JSON form, which is shared.
func (i *item) object() world.Object {
	return *kept(&i.values, func() world.Object {
		if i.spec == nil {
			return toValues(i.typed)
		}
		return world.Object{
			"apiVersion": i.kind.APIVersion(), "kind": i.kind.Kind, "metadata": toValues(i.meta()),
			"spec": i.spec.object(), "status": i.status.object(),
		}
	})
}

func (s *section) object() world.Object {
	return *kept(&s.values, func() world.Object { return toValues(s.part) })
}

func (s *section) json() []byte { return *kept(&s.text, func() []byte { return toJSON(s.part) }) }

// json returns the JSON form.
func (i *item) json() []byte {
	return *kept(&i.text, func() []byte {
		if i.spec == nil {
			return toJSON(i.typed)
		}
		meta, spec, status := i.metadataJSON(), i.spec.json(), i.status.json()
		out := make([]byte, 0, len(i.kind.prefix)+len(meta)+len(spec)+len(status)+40)
		out = append(append(out, i.kind.prefix...), `"metadata":`...)
		out = append(append(out, meta...), `,"spec":`...)
		out = append(append(out, spec...), `,"status":`...)
		return append(append(out, status...), '}')
	})
}

// protobuf returns the protobuf form, without the envelope. The API numbers metadata, spec and status 1, 2 and 3 in every
// kind that has the latter two.
func (i *item) protobuf() []byte {
	return *kept(&i.raw, func() []byte {
		if i.spec == nil {
			return marshal(i.typed)
		}
		meta := i.metadataRaw()
		out := make([]byte, 0, len(meta)+len(i.spec.raw)+len(i.status.raw)+16)
		return appendField(appendField(appendField(out, 1, meta), 2, i.spec.raw), 3, i.status.raw)
	})
}

func (i *item) metadataJSON() []byte {
	return *kept(&i.metaText, func() []byte { return toJSON(i.meta()) })
}

func (i *item) metadataRaw() []byte {
	return *kept(&i.metaRaw, func() []byte { return marshal(i.meta()) })
}

// partialJSON returns the PartialObjectMetadata in JSON.
func (i *item) partialJSON() []byte {
	const prefix = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`
	meta := i.metadataJSON()
	out := make([]byte, 0, len(prefix)+len(meta)+1)
	return append(append(append(out, prefix...), meta...), '}')
}

// partialProtobuf returns the PartialObjectMetadata in protobuf, without the envelope.
func (i *item) partialProtobuf() []byte {
	meta := i.metadataRaw()
	return appendField(make([]byte, 0, len(meta)+8), 1, meta)
}

// kept returns what is there, or makes it. Two goroutines may make it at the same time; either outcome is right.
func kept[T any](at *atomic.Pointer[T], form func() T) *T {
	if have := at.Load(); have != nil {
		return have
	}
	made := form()
	at.Store(&made)
	return &made
}
