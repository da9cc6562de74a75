package apiserver

import (
	"maps"

	kjson "sigs.k8s.io/json"
)

// mergePatch is a decoded JSON merge patch (RFC 7386).
type mergePatch map[string]any

func decodeMerge(body []byte) (applied, error) {
	patch := mergePatch{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, (*map[string]any)(&patch)); err != nil {
		return nil, err
	}
	return patch.apply, nil
}

// apply merges the patch into an object.
func (p mergePatch) apply(q *request, old *item) (object, error) {
	return q.converted(merged(old.object(), p), p)
}

// merged returns a copy with a patch applied. It copies only what changes.
func merged(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = make(map[string]any, len(patch))
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			have, _ := out[key].(map[string]any)
			out[key] = merged(have, value)
		default:
			out[key] = value
		}
	}
	return out
}
