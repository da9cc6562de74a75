package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
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
		return workload.Kind{}, fmt.Errorf("unknown kind %q: known are %s; name others with --workload-kinds, --is-Argo-Rollouts or --is-openshift, or with --config where the installation's configuration is",
			t.kind, strings.Join(known, ", "))
	default:
		return workload.Kind{}, fmt.Errorf("several kinds are called %q: add the group, e.g. %s.%s/%s", t.kind, t.kind, found[0].Group, t.name)
	}
}

// handled is what the flags and the configuration say about the target.
type handled struct {
	kind workload.Kind
	// referents are the custom resources of the configuration; nil if it has not been read.
	referents *referent.Schema
	// problem says why the configuration could not be read.
	problem error
}

// handled finds the kind of the target, among those of the flags and of the configuration. A configuration that cannot be
// read is only a problem to report if the kind is known without it.
func (q question) handled(ctx context.Context, config *rest.Config) (h handled, err error) {
	if q.selection.Configuration.IsZero() {
		h.kind, err = q.target.in(q.selection.Kinds)
		return h, err
	}
	found, problem := readConfiguration(ctx, config, q.selection.Configuration)
	h.kind, err = q.target.in(q.selection.Kinds.Override(found.WorkloadKinds...))
	if err != nil {
		return h, errors.Join(problem, err)
	}
	if h.problem = problem; problem == nil {
		h.referents, _ = referent.Compile(nil, found.Referents, q.selection.Keys.Checksum) // what is read is valid
	}
	return h, nil
}

// known is what the reading of annotations knows of custom resources.
func (h handled) known() options.Referents {
	if h.referents == nil {
		return options.Referents{}
	}
	return options.Referents{Workloads: func(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		owned, labelled = h.referents.Workload(labels, owners)
		return owned, labelled, true
	}}
}
