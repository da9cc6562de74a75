package watch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
	path   path
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
	start := 0
	for _, end := range append(splits(expression), len(expression)) {
		parsed, fault := parseTerm(expression[start:end])
		if fault != nil {
			fault.position = max(fault.position, 1) + start
			return nil, fault.in("FieldSelector", expression)
		}
		selector.terms = append(selector.terms, parsed)
		start = end + 1
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

// equal tells that one of the values at the path is the wanted one, or that
// there is none and "" is wanted.
func (t term) equal(root map[string]any) bool {
	if t.path.plain {
		return text(t.path.field(root)) == t.value
	}
	equal, found := false, false
	t.path.find(root, func(value any) {
		found = true
		equal = equal || text(value) == t.value
	})
	return equal || !found && t.value == ""
}

// splits finds the commas between terms.
func splits(expression string) []int {
	var commas []int
	outside(expression, func(i int) bool {
		if expression[i] == ',' {
			commas = append(commas, i)
		}
		return true
	})
	return commas
}

// outside visits the bytes that stand outside of brackets and are not escaped,
// until visit returns false.
func outside(expression string, visit func(i int) bool) {
	p := &parser{text: expression}
	for depth := 0; p.pos < len(expression); p.pos++ {
		switch char := p.peek(); {
		case char == '\\':
			p.pos++
		case char == '[':
			depth++
		case char == ']':
			depth = max(depth-1, 0)
		case depth > 0 && (char == '\'' || char == '"'):
			p.quote()
			p.pos--
		case depth == 0 && !visit(p.pos):
			return
		}
	}
}

// parseTerm reads one term; the fault's position is within the term.
func parseTerm(expression string) (term, *place) {
	at, width := -1, 1
	outside(expression, func(i int) bool {
		switch {
		case expression[i] == '=' && strings.HasPrefix(expression[i:], "=="), strings.HasPrefix(expression[i:], "!="):
			at, width = i, 2
		case expression[i] == '=':
			at = i
		}
		return at < 0
	})
	if at < 0 {
		return term{}, &place{position: 1, reason: "is no term; write PATH=VALUE or PATH!=VALUE"}
	}
	before := len(expression) - len(strings.TrimLeft(expression, " "))
	compiled, fault := parsePath(strings.TrimSpace(expression[:at]))
	if fault != nil {
		fault.position = max(fault.position, 1) + before
		return term{}, fault
	}
	value, fault := unescape(strings.TrimSpace(expression[at+width:]))
	if fault != nil {
		fault.position += len(expression) - len(strings.TrimLeft(expression[at+width:], " "))
		return term{}, fault
	}
	return term{path: compiled, negate: expression[at] == '!', value: value}, nil
}

// unescape resolves \, \= and \\ as the API server does.
func unescape(value string) (string, *place) {
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && i+1 < len(value) && strings.IndexByte(`,=\`, value[i+1]) >= 0:
			i++
		case value[i] == '\\' || value[i] == '=':
			return "", &place{position: i + 1, reason: fmt.Sprintf("%q in a value is written with a backslash before it", value[i])}
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
			if _, err := labels.Parse(expression[start:i]); err != nil || strings.TrimSpace(expression[start:i]) == "" {
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
	return (&place{position: start + 1, reason: reason}).in("LabelSelector", expression)
}
