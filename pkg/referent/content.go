package referent

import (
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

// version computes what counts of an object.
func (s selfRule) version(object *unstructured.Unstructured, keys []digest.Key) version {
	v := version{rule: s.rule}
	switch s.rule {
	case SelfGeneration:
		v.text = strconv.FormatInt(object.GetGeneration(), 10)
	case SelfNone:
	default:
		v.sums = make([]digest.Entry, 0, len(keys))
		for _, key := range keys {
			v.sums = append(v.sums, s.sum(object.Object, key))
		}
	}
	return v
}

func (s selfRule) sum(object map[string]any, key digest.Key) digest.Entry {
	mac := key.MAC("pod-reloader referent " + s.rule + " v1")
	if s.rule == SelfContent {
		encode(mac, content(object))
		return mac.Sum()
	}
	mac.Number(len(s.fields))
	for _, path := range s.fields {
		var values []any
		path.Find(object, func(value any) { values = append(values, value) })
		encode(mac, values)
	}
	return mac.Sum()
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

// encode writes a JSON value so that no two values have the same encoding: each has its type and its length, mappings are
// in the order of their keys. A whole number is the same whether it was decoded as an integer or not.
func encode(mac digest.MAC, value any) {
	switch value := value.(type) {
	case map[string]any:
		mac.Text("mapping")
		mac.Number(len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			mac.Text(key)
			encode(mac, value[key])
		}
	case []any:
		mac.Text("list")
		mac.Number(len(value))
		for _, item := range value {
			encode(mac, item)
		}
	case string:
		mac.Text("text")
		mac.Text(value)
	case bool:
		mac.Text(strconv.FormatBool(value))
	case nil:
		mac.Text("null")
	default:
		mac.Text("number")
		mac.Text(number(value))
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
