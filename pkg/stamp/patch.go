package stamp

import (
	"encoding/json"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Operations returns the JSON patch that turns the managed annotations of a raw workload into the wanted ones: only
// what differs, parents created where they are missing, nothing else touched. Nil if there is nothing to do. An
// annotation is left as it is where the object cannot hold it: no pod template, or something that is no object where
// annotations belong.
func Operations(o workload.Object, keys annotation.Keys, want Managed) []jsonpatch.Operation {
	have := managedBy(o, keys)
	var ops []jsonpatch.Operation
	made := map[string]bool{}
	for _, s := range managedKeys {
		value, wanted := want[s.key]
		if have.same(want, s.key) || s.template && !o.HasTemplate() {
			continue
		}
		parent := annotationsPath(o.Kind, s.template)
		path := pointer(append(slices.Clone(parent), s.annotation(keys))...)
		if !wanted {
			ops = append(ops, jsonpatch.NewOperation("remove", path, nil))
			continue
		}
		missing, possible := firstMissing(o.Raw, parent)
		if !possible {
			continue
		}
		for n := missing; n <= len(parent); n++ {
			if here := pointer(parent[:n]...); !made[here] {
				made[here] = true
				ops = append(ops, jsonpatch.NewOperation("add", here, map[string]any{}))
			}
		}
		ops = append(ops, jsonpatch.NewOperation("add", path, value))
	}
	return ops
}

// Guard returns the test operations that pin the managed annotations of a raw workload, those included that are not
// there, and its identity and generation, so that a patch computed from them fails if another writer was there first.
// The API server answers a failed test with 422 Invalid.
func Guard(o workload.Object, keys annotation.Keys) []jsonpatch.Operation {
	have := managedBy(o, keys)
	var ops []jsonpatch.Operation
	for _, s := range managedKeys {
		path := append(annotationsPath(o.Kind, s.template), s.annotation(keys))
		if value, ok := have[s.key]; ok {
			ops = append(ops, jsonpatch.NewOperation("test", pointer(path...), value))
			continue
		}
		if missing, possible := firstMissing(o.Raw, path); possible && missing <= len(path) {
			ops = append(ops, jsonpatch.NewOperation("test", pointer(path[:missing]...), json.RawMessage("null")))
		}
	}
	if uid := o.UID(); uid != "" {
		ops = append(ops, jsonpatch.NewOperation("test", "/metadata/uid", uid))
	}
	if generation := o.Generation(); generation != 0 {
		ops = append(ops, jsonpatch.NewOperation("test", "/metadata/generation", generation))
	}
	return ops
}

func annotationsPath(kind workload.Kind, template bool) []string {
	if !template {
		return []string{"metadata", "annotations"}
	}
	return append(slices.Clone(kind.Template), "metadata", "annotations")
}

// firstMissing returns the length of the shortest part of a path that leads to nothing (absent or null), or the length
// of the path and one where all of it is there. It is impossible to get on where something on the way is no object.
func firstMissing(raw map[string]any, path []string) (length int, possible bool) {
	at := raw
	for i, field := range path {
		value := at[field]
		if value == nil {
			return i + 1, true
		}
		next, ok := value.(map[string]any)
		if !ok {
			return 0, false
		}
		at = next
	}
	return len(path) + 1, true
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the JSON pointer (RFC 6901) of a path.
func pointer(path ...string) string {
	var b strings.Builder
	for _, field := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(field))
	}
	return b.String()
}
