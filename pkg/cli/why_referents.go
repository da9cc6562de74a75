package cli

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// readState reads one config object.
type readState = func(context.Context, reference.Ref) (digest.State, error)

// referentsOf is what a workload tracks, and how its ConfigMaps and Secrets are read.
type referentsOf struct {
	refs   []reference.Ref
	ring   digest.Ring
	config readState
}

// referents returns what reads custom resources, too. Where the workload tracks none, nothing is done for them.
func (f *whyFlags) referents(ctx context.Context, config *rest.Config, s options.Selection, of referentsOf) readState {
	custom := func(ref reference.Ref) bool { return ref.Kind.Custom() }
	if !slices.ContainsFunc(of.refs, custom) {
		return of.config
	}
	states, failed := f.readReferents(ctx, config, s, of)
	return func(ctx context.Context, ref reference.Ref) (digest.State, error) {
		switch {
		case !custom(ref):
			return of.config(ctx, ref)
		case failed != nil:
			return digest.State{}, failed
		default:
			return states[ref], nil
		}
	}
}

func (f *whyFlags) readReferents(ctx context.Context, config *rest.Config, s options.Selection, of referentsOf) (map[reference.Ref]digest.State, error) {
	if of.ring.Empty() {
		return nil, errors.New("custom resources cannot be compared without the digest key")
	}
	c, stop, err := readChain(ctx, config, s, of.ring)
	if err != nil {
		return nil, err
	}
	defer stop()
	states := map[reference.Ref]digest.State{}
	for _, ref := range of.refs {
		if ref.Kind.Custom() {
			states[ref] = c.State(f.cluster.namespace, ref)
		}
	}
	return states, nil
}
