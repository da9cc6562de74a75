package referent

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// namePlaceholder is where the name of an object is in the selector of its workloads.
const namePlaceholder = "{name}"

// workloadsRule says which workloads run with an object, besides those that name it in an annotation.
type workloadsRule struct {
	ownedBy   bool
	ownerKind string
	// selector is as written; empty: no workload is selected by its labels.
	selector string
	// key is the label that has the name of the object between prefix and suffix.
	key, prefix, suffix string
}

// workloadsRule reads which workloads run with an object.
func (c *compiler) workloadsRule(path *field.Path, d WorkloadsDefinition) workloadsRule {
	rule := workloadsRule{ownedBy: d.OwnedBy, ownerKind: d.OwnerKind, selector: d.Selector}
	if d.OwnerKind != "" && !d.OwnedBy {
		c.add(field.Forbidden(path.Child("ownerKind"), "it has no effect without ownedBy: true"))
	}
	if d.Selector != "" && !rule.compile() {
		c.invalid(path.Child("selector"), d.Selector,
			"want a label selector that has the name in the value of one label, such as app.kubernetes.io/instance={name}")
	}
	return rule
}

// compile finds the label with the name. It is false where none has it.
func (r *workloadsRule) compile() bool {
	const mark = "0-name-0" // stands for a name in the value of a label
	parsed, err := labels.Parse(strings.ReplaceAll(r.selector, namePlaceholder, mark))
	if err != nil {
		return false
	}
	requirements, _ := parsed.Requirements()
	for _, one := range requirements {
		values := one.Values().UnsortedList()
		if len(values) != 1 || !slices.Contains([]selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}, one.Operator()) {
			continue
		}
		if prefix, suffix, named := strings.Cut(values[0], mark); named {
			r.key, r.prefix, r.suffix = one.Key(), prefix, suffix
			return true
		}
	}
	return false
}

// named returns the name of the object that a workload with these labels runs with, if it exists.
func (r workloadsRule) named(of labels.Set) (string, bool) {
	if r.key == "" {
		return "", false
	}
	value, ok := of[r.key]
	if !ok || len(value) <= len(r.prefix)+len(r.suffix) || !strings.HasPrefix(value, r.prefix) || !strings.HasSuffix(value, r.suffix) {
		return "", false
	}
	name := value[len(r.prefix) : len(value)-len(r.suffix)]
	if reference.ValidName(name) != nil {
		return "", false // the value of a label can have letters that no name has
	}
	selector, err := labels.Parse(strings.ReplaceAll(r.selector, namePlaceholder, name))
	return name, err == nil && selector.Matches(of)
}

// owns reports whether an owner reference can be to an object of the resource. References have the kind, and the configuration
// has the resource, which is a plural of it.
func (r *Resource) owns(owner reference.Owner) bool {
	if !r.workloads.ownedBy || owner.Group != r.GVR.Group {
		return false
	}
	if r.workloads.ownerKind != "" {
		return owner.Kind == r.workloads.ownerKind
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: owner.Group, Kind: owner.Kind})
	singular := strings.ToLower(owner.Kind)
	return slices.Contains([]string{plural.Resource, singular + "s", singular + "es", singular}, r.GVR.Resource)
}

// Workload returns the custom resources that a workload with these labels and owners runs with; labelled are those that it runs
// with if they exist. Both are in the order of the configuration.
func (s *Schema) Workload(of map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref) {
	for _, r := range s.resources {
		kind := reference.CustomKind(r.GVR.GroupResource())
		for _, owner := range owners {
			if r.owns(owner) && reference.ValidName(owner.Name) == nil {
				owned = append(owned, reference.Ref{Kind: kind, Name: owner.Name})
			}
		}
		if name, ok := r.workloads.named(of); ok {
			labelled = append(labelled, reference.Ref{Kind: kind, Name: name})
		}
	}
	return owned, labelled
}
