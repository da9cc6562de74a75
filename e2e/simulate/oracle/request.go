package oracle

import (
	"bytes"
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// by says who made a stamp, and by which kind of request.
func (l *rules) by(s *stamp) string {
	switch {
	case s.program:
		return "program"
	case s.call == nil:
		return "controller"
	}
	if value, known := requested(s.call, l.options.Prefix+requestAnnotation); known && value != nil && !isDirect(s.call) {
		return "verified-reload"
	}
	how := s.call.Verb
	for _, kind := range []string{"apply", "strategic", "merge", "json-patch"} {
		if s.call.Verb == "patch" && strings.Contains(s.call.ContentType, kind) {
			return how + "-" + kind
		}
	}
	return how
}

// asksForReload reports whether a request newly sets the annotation that asks for a verified reload. Where it cannot be read,
// it is taken to ask.
func (l *rules) asksForReload(call *world.Call, w *workload) bool {
	name := l.options.Prefix + requestAnnotation
	if !bytes.Contains(call.Body, []byte(requestAnnotation)) {
		return false
	}
	value, known := requested(call, name)
	if !known || value == nil {
		return !known
	}
	if w == nil {
		return true
	}
	before := valueOf(world.Annotations(w.object), name)
	return before == nil || *before != *value
}

// isBound reports whether a request for a reload says for which generation of the workload it was made.
func (l *rules) isBound(call *world.Call) bool {
	value, _ := requested(call, l.options.Prefix+requestAnnotation)
	return value != nil && strings.Contains(*value, "@")
}

// requested returns the value that a request gives an annotation of the workload; nil if it gives none.
func requested(call *world.Call, name string) (value *string, known bool) {
	if strings.Contains(call.ContentType, "json-patch") {
		return requestedByOperations(call.Body, name)
	}
	body := world.Object{}
	if err := yaml.Unmarshal(call.Body, &body); err != nil {
		return nil, false
	}
	return valueOf(world.Annotations(body), name), true
}

func requestedByOperations(body []byte, name string) (value *string, known bool) {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, false
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	for _, op := range operations {
		if op.Op != "add" && op.Op != "replace" {
			continue
		}
		object, _ := op.Value.(map[string]any)
		switch op.Path {
		case "/metadata/annotations/" + escaped:
			if s, ok := op.Value.(string); ok {
				value = &s
			}
		case "/metadata/annotations":
			value = valueOf(object, name)
		case "/metadata":
			value = valueOf(world.Section(object, "annotations"), name)
		case "":
			value = valueOf(world.Annotations(object), name)
		}
	}
	return value, true
}

func valueOf(annotations world.Object, name string) *string {
	if s, ok := annotations[name].(string); ok {
		return &s
	}
	return nil
}
