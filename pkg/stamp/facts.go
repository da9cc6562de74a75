package stamp

import (
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// facts are what a decision is made from: the write, and what was read for it. Their methods answer questions and change nothing.
type facts struct {
	Write
	inputs Inputs
	// refs are what the write tracks, sorted.
	refs []reference.Ref
	// fresh are the hash and the Record of the live state; nil where nothing was read, or could not be.
	fresh Managed
}

// input is what the policy decides from.
func (f *facts) input(known policy.Known) policy.Input {
	return policy.Input{
		Namespace:             f.inputs.Namespace,
		Intent:                f.New.Intent,
		Refs:                  f.refs,
		Required:              f.New.Required,
		Known:                 known,
		Current:               f.inputs.States,
		Ring:                  f.inputs.Ring,
		ReloadMissingRequired: f.inputs.ReloadMissingRequired,
	}
}

func (f *facts) assess(known policy.Known) policy.Assessment { return policy.Assess(f.input(known)) }
