package stamp

import (
	"encoding/json"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Operations returns the JSON patch that turns the managed annotations of a raw workload into the wanted ones: only
// what differs, parents created where they are missing, nothing else touched. Nil if there is nothing to do. An
// annotation is left as it is where the object cannot hold it: no pod template, or something that is no object where
// annotations belong. The workload gets others besides, which it must lack.
func (r Reader) Operations(o workload.Object, want Managed, others ...Annotation) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	made := map[string]bool{}
	values := r.values(o, want)
	for _, other := range others {
		values = append(values, annotationValue{annotation: other.Key, want: value{other.Value, true}})
	}
	for _, s := range values {
		if s.have == s.want || s.template && !o.HasTemplate() {
			continue
		}
		parent := annotationsPath(o.Kind, s.template)
		path := Pointer(append(slices.Clone(parent), s.annotation)...)
		if s.want == (value{}) {
			ops = append(ops, jsonpatch.NewOperation("remove", path, nil))
			continue
		}
		missing, possible := firstMissing(o.Raw, parent)
		if !possible {
			continue
		}
		for n := missing; n <= len(parent); n++ {
			if here := Pointer(parent[:n]...); !made[here] {
				made[here] = true
				ops = append(ops, jsonpatch.NewOperation("add", here, map[string]any{}))
			}
		}
		ops = append(ops, jsonpatch.NewOperation("add", path, s.want.text))
	}
	if r.writesFields() {
		ops = append(ops, want.fields().Operations(o.Template(), Pointer(o.Kind.Template...))...)
	}
	return ops
}

// Annotation is one of a workload that the rules do not decide about.
type Annotation struct{ Key, Value string }

// Fits reports whether another annotation fits into the budget of a workload, beside managed ones.
func (v View) Fits(managed Managed, other Annotation) bool {
	return len(other.Key)+len(other.Value) <= v.bytesLeft(managed, false)
}

// value is that of an annotation, if there is one.
type value struct {
	text  string
	there bool
}

// annotationValue is one annotation as it is and as it is wanted.
type annotationValue struct {
	annotation string
	template   bool
	have, want value
}

// values returns all annotations of ours, and that of a strategy where one is chosen.
func (r Reader) values(o workload.Object, want Managed) []annotationValue {
	have := managedBy(o, r.Keys)
	of := func(m Managed, key Key) value {
		text, there := m[key]
		return value{text, there}
	}
	all := make([]annotationValue, 0, len(managedKeys))
	for _, s := range managedKeys {
		all = append(all, annotationValue{s.annotation(r.Keys), s.template, of(have, s.key), of(want, s.key)})
	}
	if r.writesFields() {
		before, after := strategy.Read(o.Template()).From, want.fields().From
		all = append(all, annotationValue{strategy.Annotation, true, value{before, before != ""}, value{after, after != ""}})
	}
	return all
}

// Guard returns the test operations that pin the managed annotations of a raw workload and the labels that exclude one, those included
// that are not there, and its identity and generation, so that a patch computed from them fails if another writer was there first.
// Of most kinds, neither annotations nor labels raise the generation. The API server answers a failed test with 422 Invalid.
func (r Reader) Guard(o workload.Object) []jsonpatch.Operation {
	have := managedBy(o, r.Keys)
	var ops []jsonpatch.Operation
	for _, s := range managedKeys {
		value, ok := have[s.key]
		ops = append(ops, pinned(o, append(annotationsPath(o.Kind, s.template), s.annotation(r.Keys)), value, ok)...)
	}
	labels := o.Labels()
	for _, label := range []string{r.Keys.IgnoredLabel, r.Keys.DisabledLabel} {
		value, ok := labels[label]
		ops = append(ops, pinned(o, []string{"metadata", "labels", label}, value, ok)...)
	}
	if uid := o.UID(); uid != "" {
		ops = append(ops, jsonpatch.NewOperation("test", "/metadata/uid", uid))
	}
	if generation := o.Generation(); generation != 0 {
		ops = append(ops, jsonpatch.NewOperation("test", "/metadata/generation", generation))
	}
	return ops
}

// pinned returns the operation that pins the text at a path of a workload, or that there is none; none where nothing can be there.
func pinned(o workload.Object, path []string, value string, ok bool) []jsonpatch.Operation {
	if ok {
		return []jsonpatch.Operation{jsonpatch.NewOperation("test", Pointer(path...), value)}
	}
	if missing, possible := firstMissing(o.Raw, path); possible && missing <= len(path) {
		return []jsonpatch.Operation{jsonpatch.NewOperation("test", Pointer(path[:missing]...), json.RawMessage("null"))}
	}
	return nil
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

// Pointer returns the JSON pointer (RFC 6901) of a path.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, field := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(field))
	}
	return b.String()
}
