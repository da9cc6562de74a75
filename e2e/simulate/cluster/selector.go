package cluster

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// selector is a label selector. The empty one matches nothing, as the controllers treat it.
type selector struct {
	labels      world.Object
	expressions []any
}

func readSelector(o world.Object) selector {
	return selector{world.Section(o, "matchLabels"), items(o, "matchExpressions")}
}

func (s selector) matches(labels world.Object) bool {
	if len(s.labels) == 0 && len(s.expressions) == 0 {
		return false
	}
	for name, value := range s.labels {
		if found, ok := labels[name]; !ok || found != value {
			return false
		}
	}
	for _, e := range s.expressions {
		if expression, ok := e.(map[string]any); !ok || !expressionMatches(expression, labels) {
			return false
		}
	}
	return true
}

func expressionMatches(expression, labels world.Object) bool {
	value, present := labels[world.Text(expression, "key")]
	among := present && slices.Contains(items(expression, "values"), value)
	switch world.Text(expression, "operator") {
	case "In":
		return among
	case "NotIn":
		return !among
	case "Exists":
		return present
	case "DoesNotExist":
		return !present
	}
	return false
}

func compareText(a, b string) int { return strings.Compare(a, b) }
