package oracle

import (
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// rollouts are the workloads of the custom kind.
const rollouts = "rollouts"

// Scope is what the flags of an installation select.
type Scope struct {
	// InScope reports whether the flags select a workload.
	InScope func(namespace string, namespaceLabels, objectLabels map[string]string) bool
	// CustomKind is true if the flags name the custom kind.
	CustomKind bool
	// Ignored are the resources of workloads that are not looked after.
	Ignored []string
	// Hidden are the config objects that are not looked at.
	Hidden Hidden
	// Clear is false while the replicas, or the webhook's configuration, do not agree.
	Clear bool
}

// scope is what the program has to look after now.
type scope struct {
	flags Scope
	// changed is when the flags changed.
	changed time.Time
	// named is whether the last valid configuration names the custom kind; known means that there was one.
	named, known bool
	// invalid means that the configuration of now is not valid, or missing; foreign that it has another template path.
	invalid, foreign bool
}

func newScope(o Options) scope {
	return scope{flags: Scope{InScope: o.InScope, CustomKind: o.CustomKind, Ignored: o.Ignored, Clear: true}}
}

// inScope reports whether the flags select a workload.
func (s *scope) inScope(namespace string, namespaceLabels, objectLabels map[string]string) bool {
	return s.flags.InScope(namespace, namespaceLabels, objectLabels)
}

// serves reports whether workloads of a resource are looked after. What the configuration names comes to what the flags name.
func (s *scope) serves(plural string) bool {
	return !slices.Contains(s.flags.Ignored, plural) && (plural != rollouts || s.flags.CustomKind || s.named)
}

// unclear reports whether it is not known if workloads of a resource are looked after. A replica that starts while the
// configuration is not valid goes by the flags alone, the others by the last valid one.
func (s *scope) unclear(plural string) bool {
	if !s.flags.Clear {
		return true
	}
	return plural == rollouts && (s.foreign || s.invalid && s.known && s.named != s.flags.CustomKind)
}

// mayHide reports whether a replica that was started with other flags may not look at an object of a resource, while others still do.
func (s *scope) mayHide(plural string) bool {
	return !s.flags.Clear && s.flags.Hidden.fromOther(plural)
}

// rescope records other flags.
func (l *ledger) rescope(at time.Time, s Scope) {
	began := at
	if !l.scope.flags.Clear {
		began = l.scope.changed
	}
	l.scope.flags, l.scope.changed = s, at
	l.count("scope changes")
	if s.Clear {
		l.hide(s.Hidden, l.versionAt(began), versionTime{at, l.version})
	}
	l.rereadScopes(at, l.version)
}

// rereadScopes decides anew which workloads the program must look after.
func (l *ledger) rereadScopes(at time.Time, version int64) {
	l.disturbed = at
	for _, w := range l.all {
		if !w.gone {
			w.requests.allowed++
			l.readScope(w, at, version)
			l.readDue(w, at)
		}
	}
}

// configuration is what the structured configuration may say.
type configuration struct {
	APIVersion    string           `json:"apiVersion"`
	Kind          string           `json:"kind"`
	WorkloadKinds []configuredKind `json:"workloadKinds"`
	Referents     []any            `json:"referents"`
}

type configuredKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Template   string `json:"template"`
}

func (k configuredKind) wrong() bool {
	return k.APIVersion == "" || k.Kind == "" || k.Template != "spec" && !strings.HasPrefix(k.Template, "spec.")
}

// commitConfiguration records a change of the structured configuration.
func (l *ledger) commitConfiguration(c world.Commit) {
	config, valid := readConfiguration(c.New)
	s := &l.scope
	s.invalid = !valid
	if valid {
		s.known, s.named, s.foreign = true, false, false
		for _, kind := range config.WorkloadKinds {
			if kind.Kind == world.Rollouts.Kind && strings.HasPrefix(kind.APIVersion, world.Rollouts.Group+"/") {
				s.named, s.foreign = true, kind.Template != "spec.template" || kind.APIVersion != world.Rollouts.APIVersion()
			}
		}
		l.count("configurations applied")
	} else {
		l.count("configurations rejected")
	}
	l.rereadScopes(c.At, c.Version)
}

// readConfiguration reads the configuration in a ConfigMap.
func readConfiguration(object world.Object) (c configuration, valid bool) {
	content := world.Text(world.Section(object, "data"), "config.yaml")
	if content == "" || yaml.UnmarshalStrict([]byte(content), &c) != nil {
		return c, false
	}
	return c, !slices.ContainsFunc(c.WorkloadKinds, configuredKind.wrong) &&
		c.APIVersion == "pod-reloader.io/v1alpha1" && c.Kind == "Configuration"
}

func (l *ledger) scopeOf(object world.Object, w *workload) bool {
	var labels map[string]string
	if namespace := l.namespaces[w.id.namespace]; namespace != nil {
		labels = namespace.labels
	}
	return l.scope.serves(w.id.plural) && l.scope.inScope(w.id.namespace, labels, texts(world.Labels(object)))
}
