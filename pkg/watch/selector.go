package watch

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// Selector is a client-side field selector: terms PATH=VALUE, PATH==VALUE or
// PATH!=VALUE, joined by commas, all of which must hold. PATH is a JSONPath as
// in Config.IndexBy; in VALUE, comma, equals sign and backslash are written
// with a backslash before them. A missing field has the value "". Where a path
// leads to several values, = wants one of them equal and != none.
//
// It has no state: any number of goroutines may use it.
type Selector struct {
	terms []term
}

type term struct {
	path   jsonpath.Path
	negate bool
	value  string
}

// NewSelector parses a field selector; the empty one matches everything. The
// error is a *ConfigError for the field FieldSelector.
func NewSelector(expression string) (*Selector, error) {
	selector := &Selector{}
	if strings.TrimSpace(expression) == "" {
		return selector, nil
	}
	for start := 0; start <= len(expression); {
		parsed, length, fault := parseTerm(expression[start:])
		if fault != nil {
			fault.Position += start
			return nil, configError("FieldSelector", expression, fault)
		}
		selector.terms = append(selector.terms, parsed)
		start += length + len(",")
	}
	return selector, nil
}

// Matches evaluates the selector on the object, which is only read.
func (s *Selector) Matches(object *unstructured.Unstructured) bool {
	for _, t := range s.terms {
		if t.equal(object.Object) == t.negate {
			return false
		}
	}
	return true
}

// equal reports whether one of the values at the path is the wanted one, or that
// there is none and "" is wanted.
func (t term) equal(root map[string]any) bool {
	if t.path.Plain() {
		return jsonpath.Text(t.path.Field(root)) == t.value
	}
	equal, found := false, false
	t.path.Find(root, func(value any) {
		found = true
		equal = equal || jsonpath.Text(value) == t.value
	})
	return equal || !found && t.value == ""
}

// parseTerm reads the term at the beginning of the text, up to a comma or the
// end, and returns its length; the fault's position is within the text.
func parseTerm(from string) (parsed term, length int, fault *jsonpath.Fault) {
	at := jsonpath.Operator(from)
	if at < 0 {
		return term{}, 0, &jsonpath.Fault{Position: 1, Reason: "is no term; write PATH=VALUE or PATH!=VALUE"}
	}
	left, begin := trim(from[:at])
	if parsed.path, fault = jsonpath.Parse(left); fault != nil {
		fault.Position = max(fault.Position, 1) + begin
		return term{}, 0, fault
	}
	parsed.negate = from[at] == '!'
	value := at + len("=")
	if parsed.negate || strings.HasPrefix(from[at:], "==") {
		value = at + len("==")
	}
	length = ending(from, value)
	right, begin := trim(from[value:length])
	if parsed.value, fault = unescape(right); fault != nil {
		fault.Position += value + begin
		return term{}, 0, fault
	}
	return parsed, length, nil
}

// ending finds where the value that begins there ends: at a comma that is not
// escaped. In a value, brackets are nothing special.
func ending(from string, begin int) int {
	end := begin
	for ; end < len(from) && from[end] != ','; end++ {
		if from[end] == '\\' {
			end++
		}
	}
	return min(end, len(from))
}

// trim cuts white space off and returns how much of it was at the beginning.
func trim(text string) (trimmed string, begin int) {
	trimmed = strings.TrimLeftFunc(text, unicode.IsSpace)
	return strings.TrimSpace(trimmed), len(text) - len(trimmed)
}

// unescape resolves \, \= and \\ as the API server does.
func unescape(value string) (string, *jsonpath.Fault) {
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && i+1 < len(value) && strings.IndexByte(`,=\`, value[i+1]) >= 0:
			i++
		case value[i] == '\\' || value[i] == '=':
			return "", &jsonpath.Fault{Position: i + 1, Reason: fmt.Sprintf("%q in a value is written with a backslash before it", value[i])}
		}
		plain.WriteByte(value[i])
	}
	return plain.String(), nil
}

// checkLabels finds the requirement of a label selector that does not parse.
func checkLabels(expression string) *ConfigError {
	if _, err := labels.Parse(expression); err == nil {
		return nil
	}
	depth, start := 0, 0
	for i := 0; i <= len(expression); i++ {
		switch {
		case i < len(expression) && expression[i] == '(':
			depth++
		case i < len(expression) && expression[i] == ')':
			depth--
		case i == len(expression) || expression[i] == ',' && depth == 0:
			if requirement, err := labels.Parse(expression[start:i]); err != nil || requirement.Empty() {
				return labelFault(expression, start, err)
			}
			start = i + 1
		}
	}
	_, err := labels.Parse(expression)
	return labelFault(expression, 0, err)
}

func labelFault(expression string, start int, err error) *ConfigError {
	reason := "a requirement is missing"
	if err != nil {
		reason = err.Error()
	}
	return configError("LabelSelector", expression, &jsonpath.Fault{Position: start + 1, Reason: reason})
}
