package apiserver

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// apply merges the patch into an object. Of kinds with a spec only the parts that it names are converted: most patches are
// small.
func (p mergePatch) apply(q *request, old *item) (object, error) {
	if q.kind.spec == nil {
		return q.converted(merged(old.object(), p), p)
	}
	next := clone(old.typed)
	meta := metaOf(next)
	if patch, ok := p["metadata"]; ok && !mergeMetadata(meta, patch) {
		*meta = metav1.ObjectMeta{}
		if err := p.part("metadata", old, meta); err != nil {
			return nil, err
		}
	}
	fresh := q.kind.make()
	if _, ok := p["spec"]; ok {
		if err := p.part("spec", old, q.kind.spec(fresh)); err != nil {
			return nil, err
		}
		copySpec(next, fresh)
	}
	if _, ok := p["status"]; ok {
		if err := p.part("status", old, q.kind.status(fresh)); err != nil {
			return nil, err
		}
		copyStatus(next, fresh)
	}
	setDefaults(next)
	return next, nil
}

// part merges one part of the object into an empty struct.
func (p mergePatch) part(field string, old *item, into any) error {
	switch patch := p[field].(type) {
	case nil:
		return nil
	case map[string]any:
		have, _ := old.object()[field].(map[string]any)
		err := valuesInto(merged(have, patch), into)
		if err == nil {
			return nil
		}
		return invalidPatch(string(toJSON(p)), err)
	default:
		return invalidPatch(string(toJSON(p)), fmt.Errorf("%s is not an object", field))
	}
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

// mergeMetadata is the short way for patches of annotations, labels and the resourceVersion. It returns false, and changes
// nothing, for any other.
func mergeMetadata(meta *metav1.ObjectMeta, patch any) bool {
	fields, ok := patch.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range fields {
		switch value := value.(type) {
		case string:
			ok = key == "resourceVersion"
		case map[string]any:
			ok = (key == "annotations" || key == "labels") && onlyStrings(value)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	for key, value := range fields {
		switch value := value.(type) {
		case string:
			meta.ResourceVersion = value
		case map[string]any:
			if key == "labels" {
				meta.Labels = mergeStrings(meta.Labels, value)
			} else {
				meta.Annotations = mergeStrings(meta.Annotations, value)
			}
		}
	}
	return true
}

func onlyStrings(values map[string]any) bool {
	for _, v := range values {
		if _, ok := v.(string); !ok && v != nil {
			return false
		}
	}
	return true
}

func mergeStrings(into map[string]string, patch map[string]any) map[string]string {
	for key, value := range patch {
		text, ok := value.(string)
		if !ok {
			delete(into, key)
			continue
		}
		if into == nil {
			into = make(map[string]string, len(patch))
		}
		into[key] = text
	}
	return into
}
