package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// subject is a workload with what both programs read of it.
type subject struct {
	object workload.Object
	source annotation.Source
	// objects are the config objects of the namespace.
	objects map[reference.Ref]annotation.Traits
	// namespaceLabels are those of the namespace.
	namespaceLabels map[string]string
	// references are the objects that the pod spec names, required those without which the pods cannot start.
	references, required map[reference.Ref]bool
	// seen are those that Reloader finds in the pod spec.
	seen map[reference.Ref]bool
	// variables are the environment variables of the containers, containers how many of those there are.
	variables  map[string]bool
	containers int
	// intent is what this program reads, with what it tracks of the present objects in resolved. sap is what only the lists
	// of the first dialect ask for.
	intent, resolved, sap annotation.Intent
	problems              []annotation.Problem
	// candidates are the objects that either program may react to, sorted.
	candidates []reference.Ref
	// concerned says that a program may reload the workload, or that an annotation asks for it.
	concerned bool
}

// read reads a workload.
func (c *comparison) read(object workload.Object) subject {
	s := subject{
		object: object, objects: c.Objects[object.Namespace()], namespaceLabels: c.NamespaceLabels[object.Namespace()],
		source: annotation.Source{
			Workload: object.Annotations(), Template: object.TemplateAnnotations(), Labels: object.Labels(), Owners: object.Owners(),
		},
		references: map[reference.Ref]bool{}, required: map[reference.Ref]bool{},
	}
	s.source.References, _ = object.References() // what can be read of a broken pod spec
	for _, r := range s.source.References {
		s.references[r.Ref] = true
		s.required[r.Ref] = !r.Optional
	}
	s.readPod()
	keys := c.Reloader.Dialect.Keys
	var dropped []annotation.Problem
	s.intent, s.problems = annotation.Parse(s.source, c.Here.Dialects...)
	s.resolved, dropped = annotation.Resolve(s.intent, annotation.Listed(s.objects), recorded{}, s.source.References)
	s.problems = append(s.problems, dropped...)
	s.sap, _ = annotation.SAP{Keys: c.Here.Keys, WithoutSecrets: c.Here.WithoutSecrets}.Parse(s.source)
	s.concerned = s.intent.Asked || c.Reloader.Dialect.AutoReloadAll || hasAny(s.source.Workload, keys) || hasAny(s.source.Template, keys)
	s.candidates = c.candidates(s)
	return s
}

// readPod reads the pod spec as Reloader does.
func (s *subject) readPod() {
	var spec corev1.PodSpec
	raw, _ := s.object.Template()["spec"].(map[string]any)
	// A spec that is none reads as empty: the API server admits none.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec)
	s.seen = seenByReloader(spec)
	s.containers = len(spec.Containers)
	s.variables = map[string]bool{}
	for _, container := range spec.Containers {
		for _, variable := range container.Env {
			s.variables[variable.Name] = true
		}
	}
}

func hasAny(annotations map[string]string, keys annotation.StakaterKeys) bool {
	for key := range annotations {
		if keys.Has(key) {
			return true
		}
	}
	return false
}

// candidates returns the objects that the workload names in any way.
func (c *comparison) candidates(s subject) []reference.Ref {
	found := map[reference.Ref]bool{}
	for ref := range s.references {
		found[ref] = true
	}
	for ref := range s.seen {
		if reference.IsName(ref.Name) { // the API server admits any name there; no object can have it
			found[ref] = true
		}
	}
	for ref := range s.sap.Tracked {
		found[ref] = true
	}
	m := c.reloaderModel()
	for _, kind := range []reference.Kind{reference.ConfigMap, reference.Secret, reference.SecretProviderClass} {
		c.listed(s, kind, m.items(s, kind), found)
	}
	refs := make([]reference.Ref, 0, len(found))
	for ref := range found {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, reference.Ref.Compare)
	return refs
}

// listed adds the names of a list, and the objects that its expressions match in Reloader: among them are those whose whole name they match.
func (c *comparison) listed(s subject, kind reference.Kind, items []string, found map[reference.Ref]bool) {
	expressions := items[:0:0]
	for _, item := range items {
		if !pattern.IsName(item) {
			expressions = append(expressions, item)
		}
		if reference.IsName(item) {
			found[reference.Ref{Kind: kind, Name: item}] = true
		}
	}
	if len(expressions) == 0 {
		return
	}
	m := c.reloaderModel()
	for ref := range s.objects {
		if ref.Kind == kind && m.matches(expressions, ref.Name) {
			found[ref] = true
		}
	}
}

// tracked reports whether this program tracks an object where the given ones exist. known says that it is recorded.
func (s subject) tracked(ref reference.Ref, exist map[reference.Ref]annotation.Traits, known bool) bool {
	if s.beyondLimit(ref) {
		return false
	}
	one := annotation.Listed{}
	if traits, ok := exist[ref]; ok {
		one[ref] = traits
	}
	intent, _ := annotation.Resolve(s.intent, one, recorded{ref: known}, nil)
	_, ok := intent.Tracked[ref]
	return ok
}

// beyondLimit reports whether a workload asks for more objects than it can track, and this is one of the others.
func (s subject) beyondLimit(ref reference.Ref) bool {
	_, tracked := s.resolved.Tracked[ref]
	return s.resolved.Dropped > 0 && !tracked
}

// samePause reports whether both programs pause the workload when they restart it, or neither does.
func (s subject) samePause(key string) bool {
	value, ok := s.source.Workload[key]
	if !ok || !s.object.Kind.Pausable() {
		return true
	}
	theirs, err := time.ParseDuration(value)
	return err == nil && max(theirs, 0) == s.intent.PausePeriod
}

// recorded is a Record with at most one object.
type recorded map[reference.Ref]bool

var _ annotation.Recorded = recorded{}

func (r recorded) Has(ref reference.Ref) bool { return r[ref] }

func (r recorded) HasContent(ref reference.Ref) bool { return r[ref] }

func (r recorded) Refs() []reference.Ref {
	var refs []reference.Ref
	for ref, known := range r {
		if known {
			refs = append(refs, ref)
		}
	}
	return refs
}

// splitList returns the items of a list as Reloader splits it.
func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
