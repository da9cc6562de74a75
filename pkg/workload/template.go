package workload

import (
	"maps"
	"reflect"
	"slices"
)

// SameTemplate reports whether two versions of a workload have the same pod template, the given annotations of the
// template put aside. Absent, null and empty annotations are the same.
func (o Object) SameTemplate(other Object, aside ...string) bool {
	return o.SameTemplateBut(other, func(template map[string]any) map[string]any { return template }, aside...)
}

// SameTemplateBut is SameTemplate for what strip leaves of the templates. It must not change them.
func (o Object) SameTemplateBut(other Object, strip func(map[string]any) map[string]any, aside ...string) bool {
	a, okA := o.template()
	b, okB := other.template()
	if !okA || !okB {
		return okA == okB
	}
	return equal(without(strip(a), aside), without(strip(b), aside))
}

// equal compares two values as JSON decoders make them. It is reflect.DeepEqual without its allocations: most requests
// that the webhook sees cost this comparison and nothing else.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, equal)
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equal)
	case string:
		other, ok := b.(string)
		return ok && a == other
	default:
		return reflect.DeepEqual(a, b)
	}
}

// without returns a shallow copy of a pod template without the given annotations, and without what is null or empty on
// the way to them: to the API that is the same as absent.
func without(template map[string]any, annotations []string) map[string]any {
	template = present(template, "metadata")
	metadata, ok := template["metadata"].(map[string]any)
	if !ok {
		return template
	}
	metadata = present(metadata, "annotations", "labels", "creationTimestamp")
	if kept, ok := metadata["annotations"].(map[string]any); ok {
		kept = maps.Clone(kept)
		for _, key := range annotations {
			delete(kept, key)
		}
		metadata["annotations"] = kept
		if len(kept) == 0 {
			delete(metadata, "annotations")
		}
	}
	template["metadata"] = metadata
	if len(metadata) == 0 {
		delete(template, "metadata")
	}
	return template
}

// present returns a shallow copy of a map that lacks those of the given fields that are null.
func present(m map[string]any, fields ...string) map[string]any {
	m = maps.Clone(m)
	for _, field := range fields {
		if m[field] == nil {
			delete(m, field)
		}
	}
	return m
}
