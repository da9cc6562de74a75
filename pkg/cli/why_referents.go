package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// readRef reads one config object of a namespace.
type readRef = func(reference.Ref) (digest.State, error)

// referentsOf is what a workload tracks, and how its ConfigMaps and Secrets are read.
type referentsOf struct {
	refs   []reference.Ref
	config readRef
	// causes are what the last reload names below each of them, by its text.
	causes map[string]string
}

// causesOf returns them for a last reload.
func causesOf(changes []record.Change) map[string]string {
	causes := map[string]string{}
	for _, change := range changes {
		causes[change.Ref] = change.Because
	}
	return causes
}

// referents returns what reads custom resources, too, and the paths from what has changed below them, or holds them. Where the
// workload tracks none, nothing is done for them.
func (e *explainer) referents(namespace string, of referentsOf) (readRef, [][]string) {
	custom := func(ref reference.Ref) bool { return ref.Kind.Custom() }
	if !slices.ContainsFunc(of.refs, custom) {
		return of.config, nil
	}
	states, paths, failed := e.readReferents(namespace, of)
	return func(ref reference.Ref) (digest.State, error) {
		switch {
		case !custom(ref):
			return of.config(ref)
		case failed != nil:
			return digest.State{}, failed
		default:
			return states[ref], notRead(states[ref])
		}
	}, paths
}

// notRead returns why a custom resource could not be read with the permissions of the user, or in time. The installation may have read it.
func notRead(state digest.State) error {
	switch hold := state.Hold; {
	case hold == nil:
		return nil
	case hold.NotReadYet:
		return errors.New(hold.Reason)
	case hold.Forbidden && !hold.Refused.IsZero():
		return fmt.Errorf("it needs a permission that you do not have: %s", hold.Reason)
	default:
		return nil
	}
}

func (e *explainer) readReferents(namespace string, of referentsOf) (states map[reference.Ref]digest.State, paths [][]string, err error) {
	if e.installed().ring.Empty() {
		return nil, nil, errors.New("custom resources cannot be compared without the digest key")
	}
	c, err := e.chain()
	if err != nil {
		return nil, nil, err
	}
	states = map[reference.Ref]digest.State{}
	for _, ref := range of.refs {
		if !ref.Kind.Custom() {
			continue
		}
		state := c.State(namespace, ref)
		states[ref] = state
		causes := []string{""}
		if state.Hold == nil {
			causes = strings.FieldsFunc(of.causes[ref.String()], func(r rune) bool { return r == ',' })
		}
		for _, cause := range causes {
			if path := c.Path(namespace, ref, cause); path != nil {
				paths = append(paths, path)
			}
		}
	}
	return states, paths, nil
}
