package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// resolve turns what the annotations select into tracked Refs. stored are the managed annotations of the version before
// the one that is read: a write may have forgotten the Record.
func (r Reader) resolve(
	namespace string, intent annotation.Intent, references []reference.Reference, managed Managed, stored []Managed,
) (annotation.Intent, []annotation.Problem, error) {
	if r.Objects == nil || len(intent.Selections) == 0 {
		return intent, nil, nil
	}
	objects, err := r.Objects(namespace)
	if err != nil {
		objects = annotation.Unlisted{}
	}
	known := records{managed.known().Record}
	for _, earlier := range stored {
		known = append(known, earlier.known().Record)
	}
	resolved, problems := annotation.Resolve(intent, objects, known, references)
	if unmatched := objects.Err(); unmatched != nil {
		resolved, problems = annotation.Resolve(intent, annotation.Unlisted{}, known, references)
		err = unmatched
	}
	return resolved, problems, err
}

// records are the valid Records of the versions of one workload.
type records []record.Record

var _ annotation.Recorded = records{}

// Has reports whether one of them has an item for a Ref.
func (r records) Has(ref reference.Ref) bool {
	return slices.ContainsFunc(r, func(one record.Record) bool { return one.Has(ref) })
}

// HasContent reports whether one of them has a content of a Ref.
func (r records) HasContent(ref reference.Ref) bool {
	return slices.ContainsFunc(r, func(one record.Record) bool { return one.HasContent(ref) })
}

// Refs returns the Refs with an item. One may be repeated.
func (r records) Refs() []reference.Ref {
	var refs []reference.Ref
	for _, one := range r {
		refs = append(refs, one.Refs()...)
	}
	return refs
}
