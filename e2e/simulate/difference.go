package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// difference says which fields of an object differ, for people.
func difference(before, after world.Object) string {
	var parts []string
	walk("", before, after, &parts)
	return strings.Join(parts, ", ")
}

func walk(path string, before, after any, parts *[]string) {
	if reflect.DeepEqual(before, after) || strings.HasSuffix(path, ".resourceVersion") || strings.HasSuffix(path, ".managedFields") {
		return
	}
	b, ok := before.(map[string]any)
	a, ok2 := after.(map[string]any)
	if !ok || !ok2 {
		*parts = append(*parts, fmt.Sprintf("%s: %s → %s", strings.TrimPrefix(path, "."), short(before), short(after)))
		return
	}
	keys := maps.Clone(b)
	maps.Copy(keys, a)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		walk(path+"."+key, b[key], a[key], parts)
	}
}

func short(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return reference.Cut(string(text), 160)
}
