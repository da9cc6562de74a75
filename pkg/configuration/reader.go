package configuration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// separator ends a YAML document. What is on the rest of the line belongs to the next one.
var separator = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]+|$)`)

// decode returns the fields of the one document in a text.
func decode(text []byte) (map[string]any, error) {
	var found map[string]any
	documents := 0
	for document, begin := range split(text) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue // a megabyte of separators is 260,000 documents
		}
		value, err := decodeOne(document)
		if err != nil {
			return nil, inText(text[:begin], document, err)
		}
		if value == nil {
			continue
		}
		documents++
		if found, _ = value.(map[string]any); found == nil {
			return nil, errNotOne
		}
	}
	switch documents {
	case 0:
		return nil, fmt.Errorf("it is empty: %w", errNotOne)
	case 1:
		return found, nil
	default:
		return nil, fmt.Errorf("it has %d YAML documents: %w", documents, errNotOne)
	}
}

// split yields the documents of a text, each with its begin.
func split(text []byte) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		begin := 0
		for _, at := range append(separator.FindAllIndex(text, -1), []int{len(text), len(text)}) {
			if !yield(text[begin:at[0]], begin) {
				return
			}
			begin = at[1]
		}
	}
}

// inText returns the error of a document that names the line of the whole text: as if empty lines were before the document.
func inText(before, document []byte, err error) error {
	lines := bytes.Repeat([]byte("\n"), bytes.Count(before, []byte("\n")))
	if _, located := decodeOne(append(lines, document...)); located != nil {
		return located
	}
	return err
}

// decodeOne returns what one document says; nil if it says nothing. A key that is twice in a mapping is an error.
func decodeOne(document []byte) (any, error) {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("it is not valid YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("it is not valid: %w", err)
	}
	return value, nil
}

// reader turns decoded YAML into values and gathers what is wrong. What is wrong reads as empty.
type reader struct{ faults field.ErrorList }

func (r *reader) add(fault *field.Error) { r.faults = append(r.faults, fault) }

// known reports unknown fields, in their order.
func (r *reader) known(path *field.Path, fields map[string]any, names ...string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(names, name) {
			r.add(field.Forbidden(path.Child(plain(name)), "this field is unknown; known are "+strings.Join(names, ", ")))
		}
	}
}

// constant wants one text and no other.
func (r *reader) constant(path *field.Path, value any, want string) {
	if got := r.text(path, value, "write "+want); got != "" && got != want {
		r.add(field.NotSupported(path, reference.Shorten(got), []string{want}))
	}
}

// text wants a text that is not empty; missing says what it is.
func (r *reader) text(path *field.Path, value any, missing string) string {
	s, ok := value.(string)
	switch {
	case value == nil, ok && s == "":
		r.add(field.Required(path, missing))
	case !ok:
		r.add(field.TypeInvalid(path, describe(value), "want a string: "+missing))
	}
	return s
}

// list wants a list; none is an empty one.
func (r *reader) list(path *field.Path, value any) []any {
	items, ok := value.([]any)
	if !ok && value != nil {
		r.add(field.TypeInvalid(path, describe(value), "want a list"))
	}
	return items
}

// mapping wants a mapping.
func (r *reader) mapping(path *field.Path, value any) map[string]any {
	fields, ok := value.(map[string]any)
	if !ok {
		r.add(field.TypeInvalid(path, describe(value), "want a mapping"))
	}
	return fields
}

// describe names a value of the wrong type, in the words of YAML.
func describe(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return reference.Shorten(value)
	default:
		return reference.Shorten(fmt.Sprint(value))
	}
}

// plain makes a key fit for the path of a field.
func plain(key string) string {
	if quoted := reference.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}
