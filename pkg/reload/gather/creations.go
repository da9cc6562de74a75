package gather

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// AsCreated returns the input with the states that config objects had when the workload was created, where nothing is recorded of them.
// They are read live, once: a watch that is behind shows an older state than the one that the pods started with. outdated means that some
// have changed since the creation. What cannot be read any more is adopted as it is now.
func (g Gatherer) AsCreated(
	ctx context.Context, s Subject, in policy.Input, refs []reference.Ref,
) (created policy.Input, outdated bool, err error) {
	version := g.Creations.Version(s.Key)
	if version == "" || s.View.Managed[stamp.Record] != "" || in.Known.Hash != "" {
		return in, false, nil
	}
	newest, _ := in.Ring.Newest()
	found := g.Creations.Found(s.Key, newest.ID)
	for _, ref := range refs {
		past, known := found[ref]
		outdated = outdated || known && !past.SameVersion(in.Current[ref])
	}
	changed, err := g.findAt(ctx, s, refs, version, found)
	if err != nil {
		return in, false, err
	}
	in.Current = maps.Clone(in.Current)
	for _, ref := range refs {
		if past, known := found[ref]; known {
			in.Current[ref] = past
		}
	}
	return in, outdated || changed, nil
}

// findAt adds the states at a version to those that were found before, and keeps them. It reports whether any has changed since.
func (g Gatherer) findAt(
	ctx context.Context, s Subject, refs []reference.Ref, version string, found map[reference.Ref]digest.State,
) (changed bool, err error) {
	unread := slices.DeleteFunc(slices.Clone(refs), func(ref reference.Ref) bool { _, ok := found[ref]; return ok })
	if len(unread) == 0 {
		return false, nil
	}
	states, err := g.Store.ReadLive(ctx, s.Key.Namespace, unread)
	if err != nil {
		return false, err
	}
	for ref, live := range states {
		past, since := g.stateAt(ctx, s, ref, live, version)
		found[ref], changed = past, changed || since
	}
	g.Creations.Keep(s.Key, version, found)
	return changed, nil
}

// stateAt returns the state that a config object had at a version, if it has another one now and that version can be read; otherwise
// the live state. An absent object has no version that could show whether it was deleted before.
func (g Gatherer) stateAt(ctx context.Context, s Subject, ref reference.Ref, live digest.State, version string) (digest.State, bool) {
	if g.Past == nil || !hasPast(ref.Kind, live) || !live.Absent && !reference.Later(live.ResourceVersion, version) {
		return live, false
	}
	past, err := g.Past(ctx, s.Key.Namespace, ref, version)
	if err != nil || reference.Later(past.ResourceVersion, version) {
		log.FromContext(ctx).V(1).Info("adopting the present version of an object", "workload", s.Key, "object", ref.String(), "error", err)
		return live, false
	}
	return past, !past.Absent || !live.Absent
}

// hasPast reports whether the pods may have been started with another content than the live one, which can be read. Of a
// SecretProviderClass that is so where the driver has rotated what a pod has mounted.
func hasPast(kind reference.Kind, live digest.State) bool {
	if kind == reference.SecretProviderClass {
		return !live.Absent && !live.Mounted
	}
	return !kind.Custom()
}

// BeforeAppearance returns the input with those of some Refs absent of which nothing is recorded and whose creation was seen, after the
// last write that could have started pods with them. They are recorded as absent, so that their creation is a Change for the webhook,
// and for any later leader, too. found says that there are some. A creation that was not seen is none: the object may have been
// selected later, which restarts nothing.
func (g Gatherer) BeforeAppearance(s Subject, in policy.Input, refs []reference.Ref) (before policy.Input, found bool) {
	since := g.Versions.Since(s.Key)
	if since == "" || in.Known.Hash != "" {
		return in, false
	}
	current := maps.Clone(in.Current)
	for _, ref := range in.Known.Unknown(refs) {
		if in.Intent.Tracked[ref].OnAppear && !current[ref].Absent && reference.Later(g.Store.Created(s.Key.Namespace, ref), since) {
			current[ref], found = digest.State{Absent: true}, true
		}
	}
	if found {
		in.Current = current
	}
	return in, found
}
