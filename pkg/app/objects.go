package app

import (
	"fmt"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// objects answers from the metadata cache what the second dialect asks about the config objects of one namespace.
type objects struct {
	store     *configstate.Store
	chain     *chain.Chain
	patterns  *pattern.Index[workload.Key]
	dialect   annotation.Stakater
	namespace string
	// budget and names are for expressions that the index does not know; err says that the budget is used up.
	budget pattern.Budget
	names  map[reference.Kind][]string
	err    error
}

var _ annotation.Objects = &objects{}

// objectsOf returns what is known of a namespace. Before its objects are listed that is an error: an absent mark or name
// would be taken for one that is not there. Where they may not be listed, what is named or recorded is tracked.
func (b *builder) objectsOf(namespace string) (annotation.Objects, error) {
	if !b.store.Listed(namespace) {
		return nil, fmt.Errorf("the config objects of the namespace %s are not listed yet", namespace)
	}
	return &objects{
		store: b.store, chain: b.chain, patterns: b.patterns, dialect: b.options.Selection.Stakater, namespace: namespace,
		names: map[reference.Kind][]string{},
	}, nil
}

// Traits reads the labels and annotations of an object. Where its kind may not be listed, they are known once it was read. A custom
// resource is asked about where the labels of a workload name it: then its existence is the mark.
func (o *objects) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if ref.Kind.Custom() {
		exists := o.chain.Exists(o.namespace, ref)
		return annotation.Traits{Marked: exists}, exists
	}
	if o.store.Unseen(o.namespace, ref) {
		return annotation.Traits{Unseen: true}, false
	}
	if !o.store.Exists(o.namespace, ref) {
		return annotation.Traits{}, false
	}
	return o.dialect.Traits(ref.Kind, o.store.Labels(o.namespace, ref), o.store.Annotations(o.namespace, ref)), true
}

// Matching asks the index of patterns. An admission request may bring an expression that it does not have: then every name is
// looked at, as far as that is quick. What takes longer the index does, where the workload is stored.
func (o *objects) Matching(kind reference.Kind, patterns []*pattern.Pattern) []string {
	matching, unknown := o.patterns.Names(o.namespace, kind, patterns)
	if len(unknown) == 0 {
		return matching
	}
	names, ok := o.names[kind]
	if !ok {
		names = o.store.Names(o.namespace, kind)
		o.names[kind] = names
	}
	for _, p := range unknown {
		more, ok := o.budget.Matching(p, names)
		if !ok {
			o.err = o.tooLong(kind, len(names))
			break
		}
		matching = append(matching, more...)
	}
	slices.Sort(matching)
	return slices.Compact(matching)
}

// tooLong says that the expressions cannot be matched with the names of a kind within the budget.
func (o *objects) tooLong(kind reference.Kind, names int) error {
	objects := reference.Count(names, string(kind))
	if o.patterns.Full(o.namespace, kind) {
		return fmt.Errorf("the namespace %s has reached its memory limit for expressions, and matching those of this workload with %s "+
			"takes too long: use fewer expressions, or names", o.namespace, objects)
	}
	return fmt.Errorf("matching the expressions with %s of the namespace %s takes long; pod-reloader checks the workload again when it has finished",
		objects, o.namespace)
}

// Err says that it would have taken too long to match all expressions.
func (o *objects) Err() error { return o.err }
