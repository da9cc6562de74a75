package oracle

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// id names an object. It is cheaper as a map key than world.Key.
type id struct{ plural, namespace, name string }

func idOf(k world.Key) id { return id{k.Resource.Plural, k.Namespace, k.Name} }

// String returns e.g. "deployments/shop/cart".
func (i id) String() string {
	if i.namespace == "" {
		return i.plural + "/" + i.name
	}
	return i.plural + "/" + i.namespace + "/" + i.name
}

func items(o world.Object, field string) []any {
	list, _ := o[field].([]any)
	return list
}

func uidOf(o world.Object) string { return world.Text(world.Section(o, "metadata"), "uid") }

func deleting(o world.Object) bool {
	return world.Text(world.Section(o, "metadata"), "deletionTimestamp") != ""
}

// controllerOf returns the kind and the uid of the controller of an object.
func controllerOf(o world.Object) (kind, uid string) {
	reference := world.Controller(o)
	return world.Text(reference, "kind"), world.Text(reference, "uid")
}

// texts returns the string values of an object.
func texts(o world.Object) map[string]string {
	all := make(map[string]string, len(o))
	for name, value := range o {
		if s, ok := value.(string); ok {
			all[name] = s
		}
	}
	return all
}

// equal compares JSON values. Numbers are compared by value, whatever their type. A field that is absent, null, or an empty
// object or list is the same.
func equal(a, b any) bool {
	if empty(a) || empty(b) {
		return empty(a) && empty(b)
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && sameWithout(x, y, func(string) bool { return false })
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case string, bool:
		return a == b
	}
	x, numeric := numberOf(a)
	y, alsoNumeric := numberOf(b)
	return numeric && alsoNumeric && x == y
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

func numberOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// sortedText writes annotations as text, sorted.
func sortedText(annotations map[string]string) string {
	lines := make([]string, 0, len(annotations))
	for name, value := range annotations {
		lines = append(lines, name+"="+value)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
