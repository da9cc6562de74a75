package chain

import (
	"context"
	"errors"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Store is a configstate.Store that knows custom resources, too.
type Store struct {
	*configstate.Store

	Chain *Chain
}

// OnEvent is for both kinds of changes.
func (s Store) OnEvent(handler func(configstate.Event)) {
	s.Store.OnEvent(handler)
	s.Chain.OnEvent(handler)
}

// Cached answers without I/O.
func (s Store) Cached(namespace string, refs []reference.Ref) map[reference.Ref]digest.State {
	config, custom := splitCustom(refs)
	return s.add(s.Store.Cached(namespace, config), namespace, custom)
}

// ReadIfChanged reads what Cached does not know of ConfigMaps and Secrets.
func (s Store) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	config, custom := splitCustom(refs)
	states, err := s.Store.ReadIfChanged(ctx, namespace, config)
	return s.add(states, namespace, custom), err
}

// ReadLive reads ConfigMaps and Secrets live, and custom resources with all that they refer to. What the loop does about them goes by
// that: a state that is not verified is a ReadError.
func (s Store) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	states, err := s.Chain.loop.read(ctx, s.Store, namespace, refs)
	for _, ref := range refs {
		if reason := states[ref].Unverified; reason != "" {
			err = errors.Join(err, &configstate.ReadError{Namespace: namespace, Ref: ref, Err: errors.New(reason)})
			delete(states, ref)
		}
	}
	return states, err
}

// Recheck reads one object while its watch fails, and takes in what that has not delivered.
func (s Store) Recheck(ctx context.Context, namespace string, ref reference.Ref) error {
	if ref.Kind.Custom() {
		return s.Chain.rechecks.recheck(ctx, namespace, ref)
	}
	return s.Store.Recheck(ctx, namespace, ref)
}

// RecheckBelow is Recheck for the loop, where a live read has found something else than the watches have delivered. A custom resource is
// read with all that it refers to.
func (s Store) RecheckBelow(ctx context.Context, namespace string, ref reference.Ref) error {
	if ref.Kind.Custom() {
		return s.Chain.loop.recheckBelow(ctx, s.Store, namespace, ref)
	}
	return s.Store.Recheck(ctx, namespace, ref)
}

// Referred returns the objects, by namespace, to which custom resources refer. While their watch fails, Recheck reads them, too: their
// events reach the Chain.
func (s Store) Referred() map[string][]reference.Ref { return s.Chain.Referred() }

// ClusterScoped reports whether the objects of a kind have no namespace.
func (s Store) ClusterScoped(kind reference.Kind) bool { return s.Chain.ClusterScoped(kind) }

// Admission is a configstate.Admission that knows custom resources, too.
type Admission struct {
	configstate.Admission

	Chain *Chain
}

// ReadLive reads config objects of a namespace live, whatever their kind. States that are not verified say so.
func (a Admission) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return a.Chain.webhook.read(ctx, a.Admission, namespace, refs)
}

// splitCustom separates custom resources from the others, which most workloads have alone.
func splitCustom(refs []reference.Ref) (config, custom []reference.Ref) {
	if !slices.ContainsFunc(refs, isCustom) {
		return refs, nil
	}
	for _, ref := range refs {
		if isCustom(ref) {
			custom = append(custom, ref)
		} else {
			config = append(config, ref)
		}
	}
	return config, custom
}

func isCustom(ref reference.Ref) bool { return ref.Kind.Custom() }

// add puts the states of custom resources beside the others. The map is the caller's.
func (s Store) add(states map[reference.Ref]digest.State, namespace string, custom []reference.Ref) map[reference.Ref]digest.State {
	for _, ref := range custom {
		states[ref] = s.Chain.State(namespace, ref)
	}
	return states
}
