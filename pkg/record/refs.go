package record

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Has reports whether something is recorded of a Ref.
func (r Record) Has(ref reference.Ref) bool {
	_, ok := r.Items([]reference.Ref{ref})[ref]
	return ok
}

// Refs returns the recorded Refs, in any order. A compact Record has no names and returns nil.
func (r Record) Refs() []reference.Ref { return slices.Collect(maps.Keys(r.items)) }
