package apiserver

import (
	"bytes"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// magic begins every protobuf body of the API.
var magic = [...]byte{'k', '8', 's', 0}

// envelope wraps a protobuf message as the API does: the magic bytes and a runtime.Unknown.
func envelope(gvk schema.GroupVersionKind, raw []byte) []byte {
	apiVersion, kind := gvk.GroupVersion().String(), gvk.Kind
	typeMeta := make([]byte, 0, len(apiVersion)+len(kind)+4)
	typeMeta = appendField(typeMeta, 1, apiVersion)
	typeMeta = appendField(typeMeta, 2, kind)
	out := make([]byte, 0, len(magic)+len(typeMeta)+len(raw)+24)
	out = append(out, magic[:]...)
	out = appendField(out, 1, typeMeta)
	out = appendField(out, 2, raw)
	out = appendField(out, 3, "")
	return appendField(out, 4, "")
}

func appendField[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

// body returns one object as an answer.
func (i *item) body(m media) []byte {
	switch {
	case m.protobuf && m.partial:
		return envelope(partialKind, i.partialProtobuf())
	case m.protobuf:
		return envelope(i.kind.gvk, i.protobuf())
	case m.partial:
		return i.partialJSON()
	default:
		return i.json()
	}
}

// list returns objects as an answer.
func list(k *kind, items []*item, version string, m media) []byte {
	gvk := k.gvk
	if m.partial {
		gvk = partialKind
	}
	gvk.Kind += "List"
	meta := metav1.ListMeta{ResourceVersion: version}
	if m.protobuf {
		return envelope(gvk, listRaw(items, meta, m.partial))
	}
	return listJSON(gvk, items, meta, m.partial)
}

// listRaw writes the message that all list types of the API have in common: 1 is the metadata, 2 the items.
func listRaw(items []*item, meta metav1.ListMeta, partial bool) []byte {
	out := appendField(nil, 1, marshal(&meta))
	for _, i := range items {
		out = append(out, i.listed(media{protobuf: true, partial: partial})...)
	}
	return out
}

// listed returns one object as an item of a list.
func (i *item) listed(m media) []byte {
	switch {
	case m.protobuf && m.partial:
		return appendField(nil, 2, i.partialProtobuf())
	case m.protobuf:
		return appendField(nil, 2, i.protobuf())
	case m.partial:
		return i.partialJSON()
	default: // The API server sends items of lists without kind and apiVersion.
		return append([]byte{'{'}, bytes.TrimPrefix(i.json(), []byte(i.kind.prefix))...)
	}
}

// shortened returns how many bytes of a list come before some of its last items; of one without items, before the end of its metadata.
func shortened(list []byte, items []*item, missing int, m media) int {
	switch {
	case len(items) > 0:
		return bytes.Index(list, items[max(len(items)-missing, 0)].listed(m))
	case m.protobuf: // two empty fields follow the metadata
		return len(list) - 5
	default:
		return bytes.LastIndexByte(list, ',') - 1
	}
}

func listJSON(gvk schema.GroupVersionKind, items []*item, meta metav1.ListMeta, partial bool) []byte {
	var out bytes.Buffer
	out.WriteString(`{"kind":"` + gvk.Kind + `","apiVersion":"` + gvk.GroupVersion().String() + `","metadata":`)
	out.Write(toJSON(&meta))
	out.WriteString(`,"items":[`)
	for n, i := range items {
		if n > 0 {
			out.WriteByte(',')
		}
		out.Write(i.listed(media{partial: partial}))
	}
	out.WriteString("]}\n")
	return out.Bytes()
}

// frame returns an event of a watch.
func frame(event string, body []byte, m media) []byte {
	if !m.protobuf {
		out := make([]byte, 0, len(body)+len(event)+24)
		out = append(out, `{"type":"`+event+`","object":`...)
		out = append(out, bytes.TrimSuffix(body, []byte("\n"))...)
		return append(out, '}', '\n')
	}
	raw := appendField(nil, 1, body)
	message := appendField(nil, 1, event)
	message = appendField(message, 2, raw)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// statusBody returns a Status as an answer or in an event.
func statusBody(status *metav1.Status, m media) []byte {
	if m.protobuf {
		return envelope(schema.GroupVersionKind{Version: "v1", Kind: "Status"}, marshal(status))
	}
	return append(toJSON(status), '\n')
}
