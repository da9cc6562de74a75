package cluster

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func truth(o world.Object, path ...string) bool {
	b, _ := world.Field(o, path...).(bool)
	return b
}

func items(o world.Object, path ...string) []any {
	l, _ := world.Field(o, path...).([]any)
	return l
}

// number returns the integer at the path, or otherwise if there is none.
func number(o world.Object, otherwise int, path ...string) int {
	if n, ok := integer(world.Field(o, path...)); ok {
		return int(n)
	}
	return otherwise
}

// integer accepts the types that JSON decoders use for numbers.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	}
	return 0, false
}

// withCount sets a count of a status, or removes it if it is zero and the API omits zeros there.
func withCount(status world.Object, name string, count int) {
	if count == 0 {
		delete(status, name)
		return
	}
	status[name] = int64(count)
}

// equal compares decoded JSON. The types of numbers do not matter; null is as good as absent.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalMaps(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	if x, ok := integer(a); ok {
		y, ok := integer(b)
		return ok && x == y
	}
	return a == b
}

func equalMaps(x, y world.Object) bool {
	present := 0
	for name, value := range x {
		if value == nil {
			continue
		}
		present++
		if !equal(value, y[name]) {
			return false
		}
	}
	for _, value := range y {
		if value != nil {
			present--
		}
	}
	return present == 0
}

func uidOf(o world.Object) string     { return world.Text(o, "metadata", "uid") }
func nameOf(o world.Object) string    { return world.Text(o, "metadata", "name") }
func createdAt(o world.Object) string { return world.Text(o, "metadata", "creationTimestamp") }
func deleting(o world.Object) bool    { return world.Field(o, "metadata", "deletionTimestamp") != nil }

// now is the time of the bubble as the API writes it: in whole seconds.
func now() string { return time.Now().UTC().Format(time.RFC3339) }

func timeOf(stamp string) time.Time {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return time.Time{}
	}
	return at
}

func podKey(namespace, name string) world.Key {
	return world.Key{Resource: world.Pods, Namespace: namespace, Name: name}
}
