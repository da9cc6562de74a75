package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// facts are what is compared of one moment: a value for each subject.
type facts map[string]string

// difference says in words in which facts two worlds differ; empty if in none.
func difference(model, onPlane facts) string {
	subjects := map[string]bool{}
	for subject := range model {
		subjects[subject] = true
	}
	for subject := range onPlane {
		subjects[subject] = true
	}
	var b strings.Builder
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		if m, r := orNothing(model, subject), orNothing(onPlane, subject); m != r {
			fmt.Fprintf(&b, "  %s\n    model:         %s\n    control plane: %s\n", subject, m, r)
		}
	}
	return b.String()
}

func orNothing(f facts, subject string) string {
	if value, there := f[subject]; there {
		return value
	}
	return "(nothing)"
}

// value is a field as it is printed: a number, a truth value or a text; empty if there is none.
func value(o world.Object, path ...string) string {
	last := len(path) - 1
	v, there := world.Section(o, path[:last]...)[path[last]]
	if !there || v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// canonical is the one text of an object: keys are sorted.
func canonical(o any) string {
	encoded, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

func isManaged(name string) bool { return strings.HasPrefix(name, act.Prefix) }

// split returns the names of the program's own annotations, and the others.
func split(annotations world.Object) (managed []string, others world.Object) {
	others = world.Object{}
	for name, v := range annotations {
		if isManaged(name) {
			managed = append(managed, strings.TrimPrefix(name, act.Prefix))
		} else {
			others[name] = v
		}
	}
	slices.Sort(managed)
	return managed, others
}
