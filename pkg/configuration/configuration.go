// Package configuration reads the structured part of pod-reloader's own configuration: what is too rich for a flag and
// may change while the program runs.
//
// It is pure: it turns text into a validated Configuration, or into a list of everything that is wrong. Package refresh,
// below it, reads the text and applies a change to the running program. A further section is one more field of
// Configuration, and one more function that reads it.
package configuration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// APIVersion and Kind are what a configuration says that it is.
const (
	APIVersion = "pod-reloader.io/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is a valid configuration.
type Configuration struct {
	// WorkloadKinds are kinds of workloads besides the built-in ones, in the order of the text. No two of them have the
	// same group and name.
	WorkloadKinds []workload.Kind
	// Referents are the resources of the checksum chain, in the order of the text. referent.Compile finds no fault in them,
	// whatever the prefix of annotations is.
	Referents []referent.Definition
}

// MaxSize is how many bytes of text are read: as many as a ConfigMap can hold.
const MaxSize = 1 << 20

// Parse reads a configuration from YAML or JSON. The error joins everything that is wrong with it, each part with the
// path of its field; text that is no YAML, or not one mapping, is one error with its line.
func Parse(text []byte) (Configuration, error) {
	if len(text) > MaxSize {
		return Configuration{}, fmt.Errorf("%d bytes are too many: at most %d are read", len(text), MaxSize)
	}
	fields, err := decode(text)
	if err != nil {
		return Configuration{}, err
	}
	r := &reader{}
	r.known(nil, fields, "apiVersion", "kind", "workloadKinds", "referents")
	r.constant(field.NewPath("apiVersion"), fields["apiVersion"], APIVersion)
	r.constant(field.NewPath("kind"), fields["kind"], Kind)
	c := Configuration{
		WorkloadKinds: r.workloadKinds(field.NewPath("workloadKinds"), fields["workloadKinds"]),
		Referents:     r.referents(field.NewPath("referents"), fields["referents"]),
	}
	if len(r.faults) > 0 {
		return Configuration{}, &Invalid{Faults: r.faults}
	}
	return c, nil
}

// Invalid is what is wrong with the fields of a configuration.
type Invalid struct{ Faults field.ErrorList }

// Error names every fault on one line.
func (e *Invalid) Error() string {
	texts := make([]string, 0, len(e.Faults))
	for _, fault := range e.Faults {
		texts = append(texts, fault.Error())
	}
	return strings.Join(texts, "; ")
}

// workloadKinds reads the section of that name.
func (r *reader) workloadKinds(path *field.Path, value any) []workload.Kind {
	var kinds []workload.Kind
	at := map[schema.GroupKind]int{}
	for i, item := range r.list(path, value) {
		path := path.Index(i)
		kind, ok := r.workloadKind(path, item)
		if !ok {
			continue
		}
		if first, twice := at[kind.GroupKind()]; twice {
			r.add(field.Invalid(path.Child("kind"), kind.ID(), fmt.Sprintf("workloadKinds[%d] has this kind already, perhaps in another version; leave one out", first)))
			continue
		}
		at[kind.GroupKind()] = i
		kinds = append(kinds, kind)
	}
	return kinds
}

// workloadKind reads one item of workloadKinds; the rules are those of package workload.
func (r *reader) workloadKind(path *field.Path, value any) (workload.Kind, bool) {
	before := len(r.faults)
	fields := r.mapping(path, value)
	if fields == nil {
		return workload.Kind{}, false
	}
	r.known(path, fields, "apiVersion", "kind", "template")
	apiVersion := r.text(path.Child("apiVersion"), fields["apiVersion"], "the group and version of the kind, e.g. argoproj.io/v1alpha1")
	name := r.text(path.Child("kind"), fields["kind"], "the kind, e.g. Rollout")
	template := r.text(path.Child("template"), fields["template"], "the path to the pod template, e.g. spec.template")
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	kind, faults := workload.NewKind(schema.GroupVersionKind{Group: group, Version: version, Kind: name}, template)
	for _, fault := range faults {
		// A missing field is reported by its own rule.
		if s, at := given(fault.Part, apiVersion, name, template); s != "" {
			r.add(field.Invalid(path.Child(at), reference.Shorten(s), fault.Reason+hint[at]))
		}
	}
	if builtin(kind.GroupKind()) {
		r.add(field.Invalid(path.Child("kind"), name, "this kind is built in; leave it out"))
	}
	return kind, len(r.faults) == before
}

// hint says, by field, how to write what was written wrong where the reason cannot know it.
var hint = map[string]string{"apiVersion": "; write group/version, e.g. argoproj.io/v1alpha1"}

// given returns the field that a part of a definition was read from, and what it says.
func given(part workload.Part, apiVersion, name, template string) (value, at string) {
	switch part {
	case workload.PartKind:
		return name, "kind"
	case workload.PartTemplate:
		return template, "template"
	default:
		return apiVersion, "apiVersion"
	}
}

func builtin(gk schema.GroupKind) bool {
	return slices.ContainsFunc(workload.Builtin(), func(k workload.Kind) bool { return k.GroupKind() == gk })
}

// errNotOne says that the text is no mapping.
var errNotOne = errors.New("want one YAML mapping that begins with apiVersion: " + APIVersion + " and kind: " + Kind)
