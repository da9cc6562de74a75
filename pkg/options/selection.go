package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const (
	// argoRollouts is the kind that --is-Argo-Rollouts adds.
	argoRollouts = "argoproj.io/v1alpha1/Rollout=spec.template"
	// deploymentConfigs is the kind that --is-openshift adds.
	deploymentConfigs = "apps.openshift.io/v1/DeploymentConfig=spec.template"
)

func (f *Flags) selection(p *problems, env Environment) Selection {
	keys, err := annotation.NewKeys(f.annotationPrefix)
	p.add("annotation-prefix", err)
	location, err := configuration.ParseLocation(f.configuration)
	p.add("config", err)
	return Selection{
		Keys: keys, Stakater: f.completeStakater(p), WithoutStakater: !f.stakaterAnnotations,
		Kinds: f.completeKinds(p, env), Scope: f.scope(p, env), Configuration: location, WithoutSecrets: !f.secrets,
	}
}

func (f *Flags) scope(p *problems, env Environment) scope.Scope {
	s := scope.Scope{
		Ignored:           f.namespaceList(p, "namespaces-to-ignore", f.withoutNamespaces),
		NamespaceSelector: p.selector("namespace-selector", standardSelector(f.namespaceSelector)),
		ObjectSelector:    p.selector("object-selector", f.objectSelector),
	}
	named := f.namedNamespaces(p, env)
	if len(named) == 0 {
		return s
	}
	s.Namespaces = slices.DeleteFunc(slices.Clone(named), func(name string) bool { return slices.Contains(s.Ignored, name) })
	if len(s.Namespaces) == 0 {
		s.Namespaces = named // an empty list would mean all; none of these is in scope
		p.add("namespaces-to-ignore", errors.New("no namespace is left: it has all those of --namespaces, or the one of $"+kubernetesNamespace))
	}
	return s
}

// NamedNamespaces returns the only namespaces to handle, those of --namespaces-to-ignore included; empty means all.
func (f *Flags) NamedNamespaces(env Environment) []string {
	var p problems // CompleteShared has them
	return f.namedNamespaces(&p, env)
}

// namedNamespaces are those of a flag or of a variable, which Reloader's chart sets where it is to watch its own namespace only. Reloader's
// own --namespaces takes precedence, too.
func (f *Flags) namedNamespaces(p *problems, env Environment) []string {
	names := f.namespaceList(p, "namespaces", f.namespaces)
	if len(names) == 0 && f.all.Changed("namespaces") {
		// The value of a variable that is not set would mean all.
		p.add("namespaces", errors.New("it has no namespace: name some, or remove the flag, and all are handled"))
	}
	only := env.Getenv(kubernetesNamespace)
	if only == "" || len(names) > 0 {
		return names
	}
	p.namespaceOf(kubernetesNamespace, only)
	return []string{only}
}

// namespaceList returns the names in a list, each once, without the empty ones.
func (f *Flags) namespaceList(p *problems, flag string, items []string) []string {
	var names []string
	for _, name := range items {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			p.namespace(flag, name)
			names = append(names, name)
		}
	}
	return names
}

func (f *Flags) completeKinds(p *problems, env Environment) workload.Kinds {
	further := f.kinds
	if f.argoRollouts.on() {
		further = slices.Insert(slices.Clone(further), 0, argoRollouts)
	}
	if f.isOpenshift(env) {
		further = slices.Insert(slices.Clone(further), 0, deploymentConfigs)
	}
	kinds := workload.Builtin()
	for _, text := range further {
		kind, err := workload.ParseKind(strings.TrimSpace(text))
		if err != nil {
			p.add("workload-kinds", err)
			continue
		}
		at := slices.IndexFunc(kinds, func(k workload.Kind) bool { return k.GroupKind() == kind.GroupKind() })
		switch {
		case at < 0:
			kinds = append(kinds, kind)
		case kinds[at].String() != kind.String():
			p.add("workload-kinds", fmt.Errorf("%s: the kind is there already, as %s: leave one out", reference.Quote(text), kinds[at]))
		}
	}
	ignored := f.ignoredKinds(p)
	return workload.NewKinds(slices.DeleteFunc(kinds, func(k workload.Kind) bool { return slices.Contains(ignored, k.GroupKind()) })...)
}

// isOpenshift reports whether DeploymentConfigs are handled. Reloader looks whether the cluster has them if the value is auto or empty,
// which is its default; a kind that the cluster does not have has no effect here. In the place of Reloader it is the default, too: the
// permissions are Reloader's. Otherwise the default is false: they need permissions of their own.
func (f *Flags) isOpenshift(env Environment) bool {
	inPlace := env.Getenv(reloaderDeployment) != "" && !f.all.Changed("is-openshift")
	return inPlace || f.openshift.on()
}

// ignoredKinds returns the built-in kinds that --ignored-workload-types names.
func (f *Flags) ignoredKinds(p *problems) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, name := range f.withoutKinds {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "jobs":
			kinds = append(kinds, workload.Job().GroupKind())
		case "cronjobs":
			kinds = append(kinds, schema.GroupKind{Group: "batch", Kind: "CronJob"})
		case "":
		default:
			p.add("ignored-workload-types", fmt.Errorf("%s: want jobs or cronjobs", reference.Quote(name)))
		}
	}
	return kinds
}

// Referents is what is known of custom resources. Both functions are nil where nothing is.
type Referents struct {
	// Resource says why the objects of a custom resource cannot be tracked.
	Resource func(reference.Kind) error
	// Workloads finds those that a workload runs with.
	Workloads annotation.Finder
}

// Unhandled are the kinds of config objects that are neither read nor watched, whatever refers to them.
func (s Selection) Unhandled() []reference.Kind {
	if s.WithoutSecrets {
		return []reference.Kind{reference.Secret}
	}
	return nil
}

// Dialects are the annotations that are read.
func (s Selection) Dialects(known Referents) []annotation.Dialect {
	dialects := []annotation.Dialect{annotation.SAP{
		Keys: s.Keys, Resource: known.Resource, Workloads: known.Workloads, WithoutSecrets: s.WithoutSecrets,
	}}
	if !s.WithoutStakater {
		dialects = append(dialects, s.Stakater)
	}
	return dialects
}

// HasStakater reports whether an annotation belongs to the second dialect, and that is read.
func (s Selection) HasStakater(key string) bool {
	return !s.WithoutStakater && s.Stakater.Keys.Has(key)
}
