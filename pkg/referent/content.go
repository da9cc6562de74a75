package referent

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// version is what of an object itself is in its parents' entries: HMACs, one for each key of the ring, or a text that is
// no secret.
type version struct {
	rule string
	text string
	sums []digest.Entry
}

func (v version) equal(o version) bool {
	return v.rule == o.rule && v.text == o.text && slices.Equal(v.sums, o.sums)
}

// bytes is the version under the i-th key.
func (v version) bytes(i int) []byte {
	if v.sums != nil {
		return v.sums[i][:]
	}
	return []byte(v.text)
}

// own is what counts of an object itself: a text, or the SHA-256 of the content. It does not depend on the digest keys, and its
// size not on that of the content.
type own struct {
	text string
	sum  [sha256.Size]byte
}

// read extracts what counts of an object.
func (s selfRule) read(object *unstructured.Unstructured) own {
	switch s.rule {
	case SelfGeneration:
		// The generation of an object that is created again begins with 1, whatever its content.
		return own{text: string(object.GetUID()) + "/" + strconv.FormatInt(object.GetGeneration(), 10)}
	case SelfNone:
		return own{}
	}
	to := encoder{sha256.New()}
	if s.rule == SelfContent {
		to.encode(content(object.Object))
	} else {
		to.number(len(s.fields))
		for _, path := range s.fields {
			var values []any
			path.Find(object.Object, func(value any) { values = append(values, value) })
			to.encode(values)
		}
	}
	return own{sum: [sha256.Size]byte(to.Sum(nil))}
}

// withoutDigest is an object without the digest that is written into it: that would count as a change of the object wherever fields
// include its annotations. The object itself does not change.
func (r *Resource) withoutDigest(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, has := annotations[r.Annotation]; !has || !r.Publish || r.self.rule != selfFields {
		return object
	}
	annotations, metadata = maps.Clone(annotations), maps.Clone(metadata)
	delete(annotations, r.Annotation)
	if metadata["annotations"] = annotations; len(annotations) == 0 {
		delete(metadata, "annotations") // as before the first digest
	}
	bare := maps.Clone(object.Object)
	bare["metadata"] = metadata
	return &unstructured.Unstructured{Object: bare}
}

// version is what is in the entries of the parents under keys.
func (s selfRule) version(o own, keys []digest.Key) version {
	v := version{rule: s.rule, text: o.text}
	if s.rule == SelfGeneration || s.rule == SelfNone {
		return v
	}
	v.sums = make([]digest.Entry, 0, len(keys))
	for _, key := range keys {
		mac := key.MAC("pod-reloader referent " + s.rule + " v1")
		mac.Bytes(o.sum[:])
		v.sums = append(v.sums, mac.Sum())
	}
	return v
}

// content is the spec of an object. A kind that has none keeps its content in other fields: then everything counts that
// is no metadata and no status.
func content(object map[string]any) map[string]any {
	if spec, ok := object["spec"]; ok {
		return map[string]any{"spec": spec}
	}
	fields := maps.Clone(object)
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(fields, name)
	}
	return fields
}

// encoder writes texts, each preceded by its length as 8 bytes, and numbers as 8 bytes.
type encoder struct{ hash.Hash }

func (e encoder) text(s string) {
	e.number(len(s))
	_, _ = io.WriteString(e.Hash, s) // a hash never fails
}

func (e encoder) number(n int) { _, _ = e.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// encode writes a JSON value so that no two values have the same encoding: each has its type and its length, mappings are
// in the order of their keys. A whole number is the same whether it was decoded as an integer or not.
func (e encoder) encode(value any) {
	switch value := value.(type) {
	case map[string]any:
		e.text("mapping")
		e.number(len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			e.text(key)
			e.encode(value[key])
		}
	case []any:
		e.text("list")
		e.number(len(value))
		for _, item := range value {
			e.encode(item)
		}
	case string:
		e.text("text")
		e.text(value)
	case bool:
		e.text(strconv.FormatBool(value))
	case nil:
		e.text("null")
	default:
		e.text("number")
		e.text(number(value))
	}
}

// exact is the bound of the whole numbers that a float64 holds exactly.
const exact = 1 << 53

// number is the text of a number. An object that was decoded by the API machinery has int64 and float64.
func number(value any) string {
	switch value := value.(type) {
	case int64:
		return strconv.FormatInt(value, 10)
	case int:
		return strconv.Itoa(value)
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < exact {
			return strconv.FormatInt(int64(value), 10)
		}
		return strconv.FormatFloat(value, 'g', -1, 64)
	default:
		return ""
	}
}
