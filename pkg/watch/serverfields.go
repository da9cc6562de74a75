package watch

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// serverFields are what the API server can evaluate of a field selector, in its
// syntax. What it does not, and what it reads otherwise, is evaluated here.
type serverFields struct {
	sure string // the name, which every resource supports
	wide string // the name, and fields that only some resources support
}

// forServer chooses the terms that never exclude an object which the Selector
// matches. For fields that only some resources support these are equalities
// with a value: what is missing here may have a default there, such as "false".
// A namespace has none; Nodes and Namespaces do not support it.
func (s *Selector) forServer() serverFields {
	var sure, wide []fields.Selector
	for _, t := range s.terms {
		field, ok := label(t.path)
		switch {
		case !ok:
		case field == "metadata.name":
			sure = append(sure, t.forServer(field))
		case field == "metadata.namespace":
			wide = append(wide, t.forServer(field))
		case strings.HasPrefix(field, "metadata."): // labels, for example: no resource supports them
		case !t.negate && t.value != "":
			wide = append(wide, fields.OneTermEqualSelector(field, t.value))
		}
	}
	return serverFields{
		sure: fields.AndSelectors(sure...).String(),
		wide: fields.AndSelectors(append(sure, wide...)...).String(),
	}
}

func (t term) forServer(field string) fields.Selector {
	if t.negate {
		return fields.OneTermNotEqualSelector(field, t.value)
	}
	return fields.OneTermEqualSelector(field, t.value)
}

// label is the path as the name of a field in a request, if it can be one:
// fields alone, of names without special characters.
func label(p jsonpath.Path) (string, bool) {
	names := p.Names()
	if !p.Plain() || slices.ContainsFunc(names, func(name string) bool { return strings.ContainsFunc(name, special) }) {
		return "", false
	}
	return strings.Join(names, "."), true
}

func special(char rune) bool {
	return char != '_' && char != '-' && (char > unicode.MaxASCII || !unicode.IsLetter(char) && !unicode.IsDigit(char))
}
