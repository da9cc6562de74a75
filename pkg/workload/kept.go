package workload

import (
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Keep says which labels and annotations are kept of a workload, by key.
type Keep struct {
	Label, Annotation func(key string) bool
	// Owner says which owners are kept, by their API group; nil keeps none.
	Owner func(group string) bool
}

// Kept is what the loop keeps of a workload that it does not treat at the moment. It is immutable, and a small part of the
// size of the object: there may be a hundred thousand. Summary reads it.
type Kept struct {
	namespace, name      string
	uid, resourceVersion string
	generation           int64
	created              time.Time
	labels               pairs
	annotations          pairs
	template             pairs
	references           []reference.Reference
	owners               []reference.Owner
	// sizes are what all annotations take, those included that are not kept: of the workload and of its template.
	sizes [2]int

	hasTemplate, controlled, deleting, paused, finished, suspended, forbidsConcurrent bool

	pending, inPlace string
	// unreadable and misplaced are the errors of Object.References and Object.Check.
	unreadable, misplaced error
}

// Keep reduces the object to what is kept of it.
func (o Object) Keep(keep Keep) *Kept {
	references, unreadable := o.References()
	onWorkload, onTemplate := o.AnnotationSizes()
	return &Kept{
		forbidsConcurrent: o.ForbidsConcurrent(),
		namespace:         unique.Make(o.Namespace()).Value(),
		name:              o.Name(),
		uid:               o.UID(),
		resourceVersion:   o.ResourceVersion(),
		generation:        o.Generation(),
		created:           o.Created(),
		labels:            pairsOf(o.Labels(), keep.Label),
		annotations:       pairsOf(o.Annotations(), keep.Annotation),
		template:          pairsOf(o.TemplateAnnotations(), keep.Annotation),
		references:        slices.Clip(references),
		owners:            ownersOf(o, keep.Owner),
		sizes:             [2]int{onWorkload, onTemplate},
		hasTemplate:       o.HasTemplate(),
		controlled:        o.Controlled(),
		deleting:          o.Deleting(),
		paused:            o.Paused(),
		finished:          o.Finished(),
		suspended:         o.Suspended(),
		pending:           o.Pending(),
		inPlace:           o.InPlace(),
		unreadable:        unreadable,
		misplaced:         o.Check(),
	}
}

// Share returns the same with the texts of an earlier version where both have them, so that a holder of those keeps
// no second copy in memory.
func (k *Kept) Share(earlier *Kept) *Kept {
	shared := *k
	for _, text := range [][2]*string{
		{&shared.name, &earlier.name}, {&shared.uid, &earlier.uid}, {&shared.resourceVersion, &earlier.resourceVersion},
	} {
		if *text[0] == *text[1] {
			*text[0] = *text[1]
		}
	}
	shared.labels = k.labels.share(earlier.labels)
	shared.annotations = k.annotations.share(earlier.annotations)
	shared.template = k.template.share(earlier.template)
	if slices.Equal(k.references, earlier.references) {
		shared.references = earlier.references
	}
	if slices.Equal(k.owners, earlier.owners) {
		shared.owners = earlier.owners
	}
	return &shared
}

// pairs are some labels or annotations, sorted by key. A map takes several times the memory.
type pairs []pair

type pair struct{ key, value string }

// pairsOf keeps a part of a map. Most workloads have the same keys, of which there is one copy.
func pairsOf(all map[string]string, keep func(string) bool) pairs {
	var kept pairs
	for key, value := range all {
		if keep(key) {
			kept = append(kept, pair{unique.Make(key).Value(), value})
		}
	}
	slices.SortFunc(kept, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return slices.Clip(kept)
}

// ownersOf keeps a part of the owners. Those of many workloads have the same group and kind, of which there is one copy.
func ownersOf(o Object, keep func(group string) bool) []reference.Owner {
	if keep == nil {
		return nil
	}
	var kept []reference.Owner
	for _, owner := range o.Owners() {
		if keep(owner.Group) {
			owner.Group, owner.Kind = unique.Make(owner.Group).Value(), unique.Make(owner.Kind).Value()
			kept = append(kept, owner)
		}
	}
	return slices.Clip(kept)
}

func (p pairs) asMap() map[string]string {
	m := make(map[string]string, len(p))
	for _, one := range p {
		m[one.key] = one.value
	}
	return m
}

func (p pairs) share(earlier pairs) pairs {
	if slices.Equal(p, earlier) {
		return earlier
	}
	shared := slices.Clone(p)
	for i, one := range p {
		at, found := slices.BinarySearchFunc(earlier, one.key, func(e pair, key string) int { return strings.Compare(e.key, key) })
		if found && earlier[at].value == one.value {
			shared[i] = earlier[at]
		}
	}
	return shared
}
