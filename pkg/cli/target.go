package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// target is the workload that is asked about, as the command line names it.
type target struct{ kind, name string }

// newTarget reads KIND/NAME.
func newTarget(args []string) (target, error) {
	if len(args) != 1 {
		return target{}, errors.New("name one workload as KIND/NAME, e.g. deployment/cart")
	}
	kind, name, ok := strings.Cut(args[0], "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return target{}, fmt.Errorf("%q: name the workload as KIND/NAME, e.g. deployment/cart", args[0])
	}
	return target{kind, name}, nil
}

// ownedKinds are names of kinds whose objects belong to a workload.
var ownedKinds = []string{"pod", "pods", "po", "replicaset", "replicasets", "rs"}

// in returns the one kind of a set that the target can be of.
func (t target) in(kinds workload.Kinds) (workload.Kind, error) {
	switch found := kinds.Find(t.kind); len(found) {
	case 1:
		return found[0], nil
	case 0:
		if kind, _, _ := strings.Cut(strings.ToLower(t.kind), "."); slices.Contains(ownedKinds, kind) {
			return workload.Kind{}, fmt.Errorf("%q: name the workload that owns it, e.g. deployment/cart", t.kind+"/"+t.name)
		}
		var known []string
		for _, k := range kinds.All() {
			known = append(known, strings.ToLower(k.Kind))
		}
		return workload.Kind{}, fmt.Errorf("unknown kind %q: known are %s; others are handled with --workload-kinds, --is-Argo-Rollouts, --is-openshift or the configuration of --config",
			t.kind, strings.Join(known, ", "))
	default:
		return workload.Kind{}, fmt.Errorf("several kinds are called %q: add the group, e.g. %s.%s/%s", t.kind, t.kind, found[0].Group, t.name)
	}
}
