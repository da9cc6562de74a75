package annotation

import (
	"errors"
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// readReferents takes the list of custom resources in: resource.group/name, comma-separated. Modifications trigger: one that
// is absent is held, and counts again when it is there.
func (l *lists) readReferents(s SAP, value string) {
	list := readList(value, referents(), func() map[string]bool { return nil })
	l.intent.Asked = l.intent.Asked || list.asked
	l.intent.Dropped += list.dropped
	l.problems = append(l.problems, list.wrong.problems(s.Keys.Referents, correctName)...)
	checked := map[reference.Kind]bool{}
	for _, item := range list.names {
		ref, _ := reference.Parse(item) // the names of the list are valid
		l.intent.track(ref, Trigger{})
		if s.Resource == nil || checked[ref.Kind] {
			continue
		}
		checked[ref.Kind] = true
		if err := s.Resource(ref.Kind); err != nil {
			l.problems = append(l.problems, Problem{Message: fmt.Sprintf("annotation %q: %s: %v", s.Keys.Referents, reference.Quote(item), err)})
		}
	}
}

// Finder finds the custom resources that a workload runs with, from its labels and owners and nothing else. It runs with the
// owned ones. It runs with the labelled ones if they exist: many workloads have a label that could name an object. known is
// false until the rules have been read. Until then, the custom resources of the Record are taken for those of the workload.
type Finder func(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool)

// find takes in the custom resources that the workload does not name.
func (l *lists) find(in Finder) {
	owned, labelled, known := in(l.source.Labels, l.source.Owners)
	for _, ref := range owned {
		l.intent.Asked = true
		l.intent.track(ref, Trigger{})
	}
	for _, ref := range labelled {
		l.intent.Selections = append(l.intent.Selections, Selection{Kind: ref.Kind, Marked: []string{ref.Name}})
	}
	if !known {
		l.intent.Selections = append(l.intent.Selections, Selection{Recorded: true})
	}
}

// referents is the syntax of a list of custom resources.
func referents() syntax {
	return syntax{is: func(item string) bool { return validReferent(item) == nil }, why: validReferent}
}

var errNotReferent = errors.New("it is not of the form resource.group/name, such as certificates.cert-manager.io/web")

func validReferent(item string) error {
	ref, err := reference.Parse(item)
	switch {
	case err == nil && ref.Kind.Custom():
		return nil
	case err == nil:
		return fmt.Errorf("%s has a list of its own", ref.Kind)
	}
	return fmt.Errorf("%s: %w", reference.Quote(item), errNotReferent)
}
