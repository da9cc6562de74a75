package plan

import (
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// model is the decision of Reloader, as of version 1.4. The rules in exchanged are this program's instead. With all of them
// exchanged it decides as this program does, which a test compares.
type model struct {
	Reloader
	ours      Here
	exchanged []Reason
	compiled
}

// compiled are the regular expressions of all lists, each once; nil for one that is invalid.
type compiled map[string]*regexp.Regexp

func (c compiled) matches(text, name string) bool {
	expression, known := c[text]
	if !known {
		expression, _ = regexp.Compile(text) // nil where it is invalid
		c[text] = expression
	}
	return expression != nil && expression.MatchString(name)
}

func (c *comparison) reloaderModel(exchanged ...Reason) model {
	return model{Reloader: c.Reloader, ours: c.Here, exchanged: exchanged, compiled: c.compiled}
}

func (m model) usesOurRule(rule Reason) bool { return slices.Contains(m.exchanged, rule) }

// decide returns what follows for a workload when an object changes. The order is that of the handlers in
// internal/pkg/handler (update.go, create.go, delete.go): ShouldReload of pkg/common/common.go decides for each workload, and
// internal/pkg/callbacks/rolling_upgrade.go acts by its kind. With --webhook-url one request is posted for each changed object
// instead, whether a workload depends on it or not; those of which none does are reported apart.
func (m model) decide(s subject, c change) Action {
	if !m.inScope(s) || !m.handles(s) || !m.triggers(s, c) {
		return Nothing
	}
	action := m.act(s, m.selectsEvent(s, c))
	if m.NotifyOnly && action != Nothing {
		return Notify
	}
	return action
}

// watches reports whether Reloader watches a namespace, by its name and labels, as in internal/pkg/cmd/reloader.go and
// internal/pkg/controller/controller.go: beside --namespaces and KUBERNETES_NAMESPACE the selector of namespaces has no effect, and
// in newer versions those to ignore have none.
func (m model) watches(namespace string, namespaceLabels map[string]string) bool {
	if len(m.Namespaces) > 0 {
		return slices.Contains(m.Namespaces, namespace)
	}
	selected := m.NamespaceSelector == nil || m.NamespaceSelector.Matches(labels.Set(namespaceLabels))
	return selected && !slices.Contains(m.IgnoredNamespaces, namespace)
}

// inScope reports whether the workload is in a namespace to watch, and is selected there.
func (m model) inScope(s subject) bool {
	namespace := s.object.Namespace()
	selector := m.ours.Scope.ObjectSelector
	if m.usesOurRule(byObjectSelector) && selector != nil && !selector.Matches(labels.Set(s.object.Labels())) {
		return false
	}
	if m.usesOurRule(byScope) {
		return m.ours.Scope.Namespace(namespace, s.namespaceLabels)
	}
	return m.watches(namespace, s.namespaceLabels)
}

// handles reports whether the workload is one to reload.
func (m model) handles(s subject) bool {
	if m.usesOurRule(byExcluded) && excluded(s, m.ours.Keys) {
		return false
	}
	kinds := m.Kinds
	if m.usesOurRule(byKind) {
		kinds = m.ours.Kinds
	}
	_, known := kinds.Get(s.object.Kind.GroupVersionKind)
	return known && s.containers > 0
}

func excluded(s subject, keys annotation.Keys) bool {
	set := s.object.Labels()
	return set[keys.IgnoredLabel] == "true" || set[keys.DisabledLabel] == "true"
}

// triggers reports whether the change of the object calls for a reload.
func (m model) triggers(s subject, c change) bool {
	if m.usesOurRule(byLimit) && s.beyondLimit(c.ref) {
		return false
	}
	_, listed := s.sap.Tracked[c.ref]
	listed = listed && m.usesOurRule(bySAP)
	selected := m.selectsEvent(s, c)
	switch c.event {
	case policy.Created:
		return m.creation(s, c, selected, listed)
	case policy.Deleted:
		return m.deletion(s, c, selected, listed)
	default:
		return selected || listed
	}
}

// selectsEvent reports whether an annotation of Reloader selects the object, and its flags the kind of change.
func (m model) selectsEvent(s subject, c change) bool {
	switch c.event {
	case policy.Created:
		return m.selects(s, c) && m.handlesCreateDelete() && m.isFlagOn(m.ReloadOnCreate, m.Dialect.ReloadOnCreate)
	case policy.Deleted:
		return m.selects(s, c) && m.handlesCreateDelete() && m.isFlagOn(m.ReloadOnDelete, m.Dialect.ReloadOnDelete)
	default:
		return m.selects(s, c)
	}
}

// handlesCreateDelete reports whether creations and deletions are processed at all (Add and Delete in internal/pkg/controller/controller.go).
func (m model) handlesCreateDelete() bool { return !m.OneKind || m.usesOurRule(byOneKind) }

// isFlagOn reports whether a flag is on, by what its value means in both programs.
func (m model) isFlagOn(theirs, ours bool) bool { return theirs || ours && m.usesOurRule(bySwitch) }

// creation is for created objects, which count with --reload-on-create; those of the first dialect's lists always.
func (m model) creation(s subject, c change, selected, listed bool) bool {
	waited := m.usesOurRule(byRequiredCreated) && s.required[c.ref]
	return (selected || listed) && !waited
}

// deletion is for deleted objects, which count with --reload-on-delete. With the strategy env-vars Reloader removes the variable
// of the object (removeContainerEnvVars in internal/pkg/handler/delete.go), and without one nothing changes.
func (m model) deletion(s subject, c change, selected, listed bool) bool {
	if listed && !selected {
		return !s.required[c.ref] || m.ours.ReloadMissingRequired
	}
	return selected && (!m.Variables || m.usesOurRule(byDeletedVariable) || s.variables[strategy.VariableName(c.ref)])
}

// origin returns the annotations that count for a kind: those of the pod template where the workload has none of four.
func (m model) origin(s subject, kind reference.Kind) map[string]string {
	keys := m.Dialect.Keys.Of(kind)
	for _, key := range []string{keys.Reload, m.Dialect.Keys.Auto, keys.Auto, m.Dialect.Keys.Search} {
		if _, ok := s.source.Workload[key]; ok {
			return s.source.Workload
		}
	}
	return s.source.Template
}

// items returns the list of names and expressions for a kind.
func (m model) items(s subject, kind reference.Kind) []string {
	return splitList(m.origin(s, kind)[m.Dialect.Keys.Of(kind).Reload])
}

// watchesKind reports whether objects of a kind are watched.
func (m model) watchesKind(kind reference.Kind) bool {
	if m.usesOurRule(bySecrets) && m.ours.WithoutSecrets && kind == reference.Secret {
		return false
	}
	return slices.Contains(m.Dialect.HandledKinds(), kind)
}

// selects is ShouldReload of pkg/common/common.go, with the search for a container that uses the object
// (getContainerUsingResource in internal/pkg/handler/upgrade.go).
func (m model) selects(s subject, c change) bool {
	keys := m.Dialect.Keys.Of(c.ref.Kind)
	if !m.watchesKind(c.ref.Kind) || c.traits.Ignored || slices.Contains(splitList(s.source.Workload[keys.Exclude]), c.ref.Name) {
		return false
	}
	from := m.origin(s, c.ref.Kind)
	if on, err := strconv.ParseBool(from[m.Dialect.Keys.Auto]); m.usesOurRule(byAutoFalse) && err == nil && !on {
		return false
	}
	return m.matches(m.accepted(s, c.ref.Kind), c.ref.Name) || m.automatic(s, from, c.ref) ||
		from[m.Dialect.Keys.Search] == "true" && c.traits.Marked && m.uses(s, c.ref)
}

// automatic reports whether auto, typed auto or --auto-reload-all selects the object.
func (m model) automatic(s subject, from map[string]string, ref reference.Ref) bool {
	auto, typed := from[m.Dialect.Keys.Auto], from[m.Dialect.Keys.Of(ref.Kind).Auto]
	on, _ := strconv.ParseBool(auto) // what cannot be read is false
	typedOn, _ := strconv.ParseBool(typed)
	return (on || typedOn || auto == "" && typed == "" && m.Dialect.AutoReloadAll) && m.uses(s, ref)
}

// uses reports whether the pod spec names the object.
func (m model) uses(s subject, ref reference.Ref) bool {
	if m.usesOurRule(byReferences) {
		return s.references[ref]
	}
	return s.seen[ref]
}

// accepted returns the items of the list that count.
func (m model) accepted(s subject, kind reference.Kind) []string {
	items := m.items(s, kind)
	if !m.usesOurRule(byRejected) {
		return items
	}
	known := map[string]bool{}
	for _, selection := range s.intent.Selections {
		for _, p := range selection.Patterns {
			known[string(selection.Kind)+"/"+p.String()] = true
		}
	}
	return slices.DeleteFunc(items, func(item string) bool {
		return !reference.IsName(item) && !known[string(kind)+"/"+item]
	})
}

// matches compares a name with items. Reloader puts ^ and $ around each one as it is written; one that is invalid is skipped.
func (m model) matches(items []string, name string) bool {
	return slices.ContainsFunc(items, func(item string) bool {
		if pattern.IsName(item) {
			return item == name
		}
		text := "^" + item + "$"
		if m.usesOurRule(byWholeName) {
			text = "^(?:" + item + ")$"
		}
		return m.compiled.matches(text, name)
	})
}

// act returns what becomes of a workload of its kind (internal/pkg/callbacks/rolling_upgrade.go). selected says that Reloader
// reacts to the change, and not only the first dialect.
func (m model) act(s subject, selected bool) Action {
	kind := s.object.Kind
	switch {
	case kind.CreateOnly && m.usesOurRule(byJob):
		return jobAction(s, selected, m.ours.RerunFinishedJobs)
	case kind.CreateOnly:
		return Recreate
	case kind.Schedules():
		return m.run(cronrun.CronJob{Object: s.object}, selected)
	case kind.Restartable() && s.source.Workload["reloader.stakater.com/rollout-strategy"] == "restart":
		return RestartAt
	default:
		return Restart
	}
}

// run returns what becomes of a CronJob, which Reloader runs whatever its spec says.
func (m model) run(cron cronrun.CronJob, selected bool) Action {
	switch {
	case !selected || m.usesOurRule(bySuspended) && cron.Decide(0) == cronrun.Skip:
		return NextRun
	case m.usesOurRule(byConcurrency) && cron.Exclusive():
		return RunAlone
	default:
		return Run
	}
}
