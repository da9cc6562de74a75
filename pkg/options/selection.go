package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// selectionFlags are those that say which workloads are handled, and by which annotations.
type selectionFlags struct {
	set                                              *pflag.FlagSet
	namespaces, withoutNamespaces, namespaceSelector []string
	kinds, withoutKinds                              []string
	objectSelector, configuration, prefix            string
	argoRollouts, openshift                          textSwitch
	secrets                                          bool
}

func (f *selectionFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringSliceVar(&f.namespaces, "namespaces", nil,
		"only these `namespaces`, comma-separated or repeated; needs permissions in these only (default: all but kube-system)")
	set.StringSliceVar(&f.withoutNamespaces, "namespaces-to-ignore", nil, "`namespaces` to exclude, comma-separated or repeated")
	set.StringSliceVar(&f.namespaceSelector, "namespace-selector", nil,
		"only namespaces with these labels, as `selector` (e.g. pod-reloader=enabled); also key:value and key=*")
	set.StringVar(&f.objectSelector, "object-selector", "", "only workloads with these labels, as `selector`")
	set.StringSliceVar(&f.kinds, "workload-kinds", nil,
		"workload `kinds` in addition to the built-in ones, comma-separated or repeated, as group/version/Kind=path.of.pod.template (e.g. apps.kruise.io/v1alpha1/CloneSet=spec.template)")
	set.StringSliceVar(&f.withoutKinds, "ignored-workload-types", nil, "kinds to exclude: `jobs,cronjobs`; no permissions on them are needed")
	addSwitch(set, &f.argoRollouts, "is-Argo-Rollouts", "also Argo Rollouts, as --workload-kinds="+workload.Rollout().String())
	f.openshift.detect = true
	addSwitch(set, &f.openshift, "is-openshift", "also DeploymentConfigs of OpenShift: `true|false|auto`; auto means true: a kind that "+
		"the cluster does not serve has no effect; as --workload-kinds="+workload.DeploymentConfig().String())
	set.BoolVar(&f.secrets, "secrets", true, "false: Secrets are not handled, and no permissions on them are needed, except on the Secret of the digest key")
	set.StringVar(&f.configuration, "config", "",
		"structured configuration, as `configmap:NAMESPACE/NAME` or the path of a file; the manager applies a valid change without a restart")
	set.StringVar(&f.prefix, "annotation-prefix", annotation.DefaultPrefix, "`prefix` of the annotations and labels")
}

func (f *selectionFlags) complete(p *problems, env Environment, stakater *stakaterFlags) Selection {
	keys, err := annotation.NewKeys(f.prefix)
	p.add("annotation-prefix", err)
	location, err := configuration.ParseLocation(f.configuration)
	p.add("config", err)
	ignored := f.ignoredKinds(p)
	return Selection{
		Keys: keys, Stakater: stakater.complete(p, f.secrets), WithoutStakater: !stakater.read,
		Kinds: f.completeKinds(p, env, ignored), IgnoredKinds: ignored, Scope: f.scope(p, env),
		Configuration: location, WithoutSecrets: !f.secrets,
	}
}

func (f *selectionFlags) scope(p *problems, env Environment) scope.Scope {
	s := scope.Scope{
		Ignored:           p.namespaces("namespaces-to-ignore", f.withoutNamespaces),
		NamespaceSelector: p.selector("namespace-selector", standardSelector(f.namespaceSelector)),
		ObjectSelector:    p.selector("object-selector", f.objectSelector),
	}
	named := f.named(p, env)
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

// named returns the namespaces of a flag or of a variable, which Reloader's chart sets where it is to watch its own namespace only.
// Reloader's own --namespaces takes precedence, too.
func (f *selectionFlags) named(p *problems, env Environment) []string {
	names := p.namespaces("namespaces", f.namespaces)
	if len(names) == 0 && f.set.Changed("namespaces") {
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

func (f *selectionFlags) completeKinds(p *problems, env Environment, ignored workload.Kinds) workload.Kinds {
	kinds := workload.Builtin()
	if f.isOpenshift(env) {
		kinds = append(kinds, workload.DeploymentConfig())
	}
	if f.argoRollouts.on() {
		kinds = append(kinds, workload.Rollout())
	}
	for _, text := range f.kinds {
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
	return workload.NewKinds(slices.DeleteFunc(kinds, func(k workload.Kind) bool {
		_, without := ignored.Get(k.GroupVersionKind)
		return without
	})...)
}

// isOpenshift reports whether DeploymentConfigs are handled. Reloader looks whether the cluster has them if the value is auto or empty,
// which is its default; a kind that the cluster does not have has no effect here. In the place of Reloader it is the default, too: the
// permissions are Reloader's. Otherwise the default is false: they need permissions of their own.
func (f *selectionFlags) isOpenshift(env Environment) bool {
	inPlace := env.Getenv(reloaderDeployment) != "" && !f.set.Changed("is-openshift")
	return inPlace || f.openshift.on()
}

// ignoredKinds returns the built-in kinds that --ignored-workload-types names.
func (f *selectionFlags) ignoredKinds(p *problems) workload.Kinds {
	var kinds []workload.Kind
	for _, name := range f.withoutKinds {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "jobs":
			kinds = append(kinds, workload.Job())
		case "cronjobs":
			kinds = append(kinds, workload.CronJob())
		case "":
		default:
			p.add("ignored-workload-types", fmt.Errorf("%s: want jobs or cronjobs", reference.Quote(name)))
		}
	}
	return workload.NewKinds(kinds...)
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

// Marks reports whether an annotation of a config object counts in the second dialect, and that is read.
func (s Selection) Marks(key, value []byte) bool {
	return !s.WithoutStakater && s.Stakater.Keys.Marks(key, value)
}

// HasStakater reports whether an annotation belongs to the second dialect, and that is read.
func (s Selection) HasStakater(key string) bool {
	return !s.WithoutStakater && s.Stakater.Keys.Has(key)
}
