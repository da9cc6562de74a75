package configuration

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// optional wants a text, or nothing.
func (r *reader) optional(path *field.Path, value any) string {
	s, ok := value.(string)
	if !ok && value != nil {
		r.add(field.TypeInvalid(path, describe(value), "want a string; a number, true or null is one in quotes"))
	}
	return s
}

// choice wants one of some texts, or nothing.
func (r *reader) choice(path *field.Path, value any, choices ...string) string {
	s := r.optional(path, value)
	if s != "" && !slices.Contains(choices, s) {
		r.add(field.NotSupported(path, reference.Shorten(s), choices))
	}
	return s
}

// boolean wants true, false or nothing, which is false.
func (r *reader) boolean(path *field.Path, value any) bool {
	b, ok := value.(bool)
	if !ok && value != nil {
		r.add(field.TypeInvalid(path, describe(value), "want true or false"))
	}
	return b
}

// texts wants a list of texts.
func (r *reader) texts(path *field.Path, value any) []string {
	var all []string
	for i, item := range r.list(path, value) {
		all = append(all, r.optional(path.Index(i), item))
	}
	return all
}

// optionalMapping wants a mapping, or nothing.
func (r *reader) optionalMapping(path *field.Path, value any) map[string]any {
	if value == nil {
		return nil
	}
	return r.mapping(path, value)
}
