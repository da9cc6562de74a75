package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// item is one version of an object, or its deletion. It never changes. The encodings are made when they are first wanted
// and kept, since each of many clients reads the same version.
type item struct {
	kind    *kind
	version int64
	typed   object
	// raw is the protobuf form of typed, without the envelope.
	raw []byte
	// gone marks a deletion; typed is then the last state, with the version of the deletion.
	gone bool

	values   atomic.Pointer[world.Object]
	text     atomic.Pointer[[]byte]
	metaText atomic.Pointer[[]byte]
	metaRaw  atomic.Pointer[[]byte]
}

// newItem takes over an object that nothing else changes any more.
func newItem(k *kind, version int64, o object) *item {
	metaOf(o).ResourceVersion = formatVersion(version)
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return &item{kind: k, version: version, typed: o, raw: marshal(o)}
}

// deletion returns the item that ends an object.
func (i *item) deletion(version int64) *item {
	gone := newItem(i.kind, version, clone(i.typed))
	gone.gone = true
	return gone
}

// at returns the same content under another version, as a watch shows an object that leaves its selection.
func (i *item) at(version int64) *item { return newItem(i.kind, version, clone(i.typed)) }

func (i *item) meta() *metav1.ObjectMeta { return metaOf(i.typed) }

// live tells whether there is an object.
func (i *item) live() bool { return i != nil && !i.gone }

// object returns the decoded JSON form, which is shared.
func (i *item) object() world.Object {
	if values := i.values.Load(); values != nil {
		return *values
	}
	values := toValues(i.typed)
	i.values.Store(&values)
	return values
}

// json returns the JSON form.
func (i *item) json() []byte { return kept(&i.text, func() []byte { return toJSON(i.typed) }) }

// metadata returns the PartialObjectMetadata in JSON.
func (i *item) metadata() []byte {
	return kept(&i.metaText, func() []byte { return toJSON(partialOf(i.meta())) })
}

// metadataRaw returns the PartialObjectMetadata in protobuf, without the envelope.
func (i *item) metadataRaw() []byte {
	return kept(&i.metaRaw, func() []byte { return marshal(partialOf(i.meta())) })
}

func kept(at *atomic.Pointer[[]byte], encode func() []byte) []byte {
	if data := at.Load(); data != nil {
		return *data
	}
	data := encode()
	at.Store(&data)
	return data
}

func partialOf(meta *metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: *meta,
	}
}

// The API's own types can always be encoded; a failure is a defect of the model.

func marshal(m interface{ Marshal() ([]byte, error) }) []byte {
	data, err := m.Marshal()
	if err != nil {
		panic(fmt.Errorf("encode %T: %w", m, err))
	}
	return data
}

func toJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode %T: %w", v, err))
	}
	return data
}

func toValues(o object) world.Object {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Errorf("convert %T: %w", o, err))
	}
	return values
}

func formatVersion(version int64) string { return strconv.FormatInt(version, 10) }
