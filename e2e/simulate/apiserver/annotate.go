package apiserver

import (
	"encoding/json"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	batchv1 "k8s.io/api/batch/v1"
)

// annotated is the short way for patches of single annotations, of the object or of its pod template: it needs no JSON. It
// returns false for any other patch, and where one does not fit: then the long way finds out why.
func (o operations) annotated(i *item) (object, bool) {
	if i.kind.spec == nil || len(o) == 0 {
		return nil, false
	}
	next := clone(i.typed)
	for _, operation := range o {
		if !annotateOne(next, operation) {
			return nil, false
		}
	}
	return next, true
}

// annotateOne applies an operation to an object.
func annotateOne(o object, operation jsonpatch.Operation) bool {
	path, err := operation.Path()
	if err != nil {
		return false
	}
	annotations, key, ok := annotationAt(o, path)
	if !ok || len(annotations) == 0 { // where there are none, the JSON form has no place for one
		return false
	}
	have, there := annotations[key]
	value, isText := textOf(operation)
	switch operation.Kind() {
	case "add":
		ok = isText
	case "replace":
		ok = isText && there
	case "test":
		return isText && there && have == value
	case "remove":
		delete(annotations, key)
		return there
	default:
		return false
	}
	if ok {
		annotations[key] = value
	}
	return ok
}

// annotationAt returns the annotation that a path is about, and those next to it.
func annotationAt(o object, path string) (annotations map[string]string, key string, ok bool) {
	const below = "/metadata/annotations/"
	parent, key, ok := strings.Cut(path, below)
	if !ok || strings.Contains(key, "/") {
		return nil, "", false
	}
	key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	if parent == "" {
		return metaOf(o).Annotations, key, true
	}
	t, at := template(o), "/spec/template"
	if _, cron := o.(*batchv1.CronJob); cron {
		at = "/spec/jobTemplate/spec/template"
	}
	if t == nil || parent != at {
		return nil, "", false
	}
	return t.Annotations, key, true
}

// textOf returns the value of an operation, if it is a string.
func textOf(operation jsonpatch.Operation) (text string, ok bool) {
	raw := operation["value"]
	if raw == nil || len(*raw) == 0 || (*raw)[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(*raw, &text) == nil
}
