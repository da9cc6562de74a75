package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
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
	if !ok || name == "" {
		return target{}, fmt.Errorf("%q: name the workload as KIND/NAME, e.g. deployment/cart", args[0])
	}
	return target{kind, name}, nil
}

// in returns the one kind of a set that the target can be of.
func (t target) in(kinds workload.Kinds) (workload.Kind, error) {
	switch found := kinds.Find(t.kind); len(found) {
	case 1:
		return found[0], nil
	case 0:
		var known []string
		for _, k := range kinds.All() {
			known = append(known, strings.ToLower(k.Kind))
		}
		return workload.Kind{}, fmt.Errorf("unknown kind %q: known are %s; name others with --workload-kinds, or with --config where the installation's configuration is",
			t.kind, strings.Join(known, ", "))
	default:
		return workload.Kind{}, fmt.Errorf("several kinds are called %q: add the group, e.g. %s.%s/%s", t.kind, t.kind, found[0].Group, t.name)
	}
}

// kind returns the kind of the target, among those of the flags and of the configuration. A configuration that cannot be
// read is only a problem to report if the kind is known without it.
func (q question) kind(ctx context.Context, config *rest.Config) (kind workload.Kind, problem, err error) {
	if q.selection.Configuration.IsZero() {
		kind, err = q.target.in(q.selection.Kinds)
		return kind, nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return workload.Kind{}, nil, err
	}
	found, problem := refresh.Read(ctx, q.selection.Configuration, client)
	kind, err = q.target.in(q.selection.Kinds.Override(found.WorkloadKinds...))
	if err != nil {
		return workload.Kind{}, nil, errors.Join(problem, err)
	}
	return kind, problem, nil
}
