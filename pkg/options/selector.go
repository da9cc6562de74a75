package options

import "strings"

// standardSelector joins label selectors, and translates the forms that Reloader takes besides: k:v, k:* and k=*.
func standardSelector(selectors []string) string {
	terms := splitTerms(strings.Join(selectors, ","))
	for i, term := range terms {
		terms[i] = standardTerm(strings.TrimSpace(term))
	}
	return strings.Join(terms, ",")
}

func standardTerm(term string) string {
	key, value, legacy := strings.Cut(term, ":")
	if !legacy {
		key, value, legacy = strings.Cut(term, "=")
		legacy = legacy && value == "*"
	}
	switch {
	case !legacy:
		return term
	case value == "*":
		return key
	default:
		return key + "=" + value
	}
}

// splitTerms splits at the commas that are not in parentheses: "a in (b,c),d" has two terms.
func splitTerms(selector string) []string {
	var terms []string
	depth, start := 0, 0
	for i, c := range selector {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				terms = append(terms, selector[start:i])
				start = i + 1
			}
		}
	}
	return append(terms, selector[start:])
}
