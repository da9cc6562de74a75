package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Part is something that a kind is defined by.
type Part string

// The parts of a definition.
const (
	PartGroup    Part = "group"
	PartVersion  Part = "version"
	PartKind     Part = "kind"
	PartTemplate Part = "template"
)

// Fault is one thing that is wrong with the definition of a kind.
type Fault struct {
	Part Part
	// Reason quotes what is wrong and says what is wanted.
	Reason string
}

var (
	kindName  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	versionRe = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
	groupRe   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	fieldRe   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
)

// NewKind makes a kind of what a user defined: its group, version and name, and the path that leads to its pod template
// as kubectl writes it, e.g. spec.template. It returns all that is wrong; the kind is to be used if nothing is.
func NewKind(gvk schema.GroupVersionKind, template string) (Kind, []Fault) {
	kind := Kind{GroupVersionKind: gvk, Template: strings.Split(strings.TrimPrefix(template, "."), ".")}
	var faults []Fault
	check := func(part Part, ok bool, format string, values ...any) {
		if !ok {
			faults = append(faults, Fault{Part: part, Reason: fmt.Sprintf(format, values...)})
		}
	}
	check(PartGroup, groupRe.MatchString(gvk.Group), "%s is not an API group", reference.Quote(gvk.Group))
	check(PartVersion, versionRe.MatchString(gvk.Version), "%s is not an API version such as v1 or v1beta1", reference.Quote(gvk.Version))
	check(PartKind, kindName.MatchString(gvk.Kind), "%s is not a kind such as CloneSet", reference.Quote(gvk.Kind))
	// A Deployment finds its ReplicaSets by the content of their templates, and gives its annotations to them.
	check(PartKind, gvk.GroupKind() != schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		"a ReplicaSet does not replace its pods when its template changes: annotate the workload that owns it")
	wrong := slices.IndexFunc(kind.Template, func(field string) bool { return !fieldRe.MatchString(field) })
	if wrong >= 0 {
		check(PartTemplate, false, "%s is not a field name; the path leads to the pod template, e.g. spec.template", reference.Quote(kind.Template[wrong]))
		return kind, faults
	}
	check(PartTemplate, kind.Template[0] == "spec", "the path must begin with spec: nothing but the spec is desired state")
	return kind, faults
}
