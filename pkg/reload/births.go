package reload

import (
	"context"
	"maps"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// asCreated returns the input with the states that config objects had when the workload was created at a version, where they have
// changed since and nothing of them is recorded; false if there are none. What cannot be read any more is adopted as it is now.
func (g gatherer) asCreated(ctx context.Context, s subject, in policy.Input, refs []reference.Ref) (policy.Input, bool) {
	version := g.births.Version(s.key)
	if g.past == nil || version == "" || s.view.Managed[stamp.Record] != "" || in.Known.Hash != "" {
		return in, false
	}
	current := maps.Clone(in.Current)
	changed := false
	for _, ref := range refs {
		if (ref.Kind != reference.ConfigMap && ref.Kind != reference.Secret) || !later(in.Current[ref].ResourceVersion, version) {
			continue
		}
		state, err := g.past(ctx, s.key.Namespace, ref, version)
		if err != nil || later(state.ResourceVersion, version) {
			log.FromContext(ctx).V(1).Info("Adopting the present version of an object", "workload", s.key, "object", ref.String(), "reason", err)
			continue
		}
		current[ref], changed = state, true
	}
	in.Current = current
	return in, changed
}

// later reports whether a resourceVersion is that of a later write than another one. They are of different resources, which share the
// revisions of their storage; where they do not, the API server has no such version to read, or answers with one that is later.
func later(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return false
	}
	b, err := strconv.ParseUint(than, 10, 64)
	return err == nil && a > b
}
