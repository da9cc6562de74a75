// Package plan compares what Stakater's Reloader does with each workload of a cluster with what this program would do, before
// it is installed.
//
// It is one of the pure packages, above policy and cronrun. Here is answered by the same functions that the webhook and the
// loop ask; Reloader by a model of its decision, in which each rule that this program has otherwise can be exchanged for ours. The
// rule whose exchange removes a difference is its reason, so that no list of differences can become stale.
package plan

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Input is what the comparison needs: no content of any config object.
type Input struct {
	// Workloads are those of all kinds that either program handles.
	Workloads []workload.Object
	// Objects has the config objects of each namespace.
	Objects map[string]map[reference.Ref]annotation.Traits
	// NamespaceLabels has the labels of each namespace.
	NamespaceLabels map[string]map[string]string
	Reloader        Reloader
	Here            Here
	// Now is the time of the comparison.
	Now time.Time
}

// Reloader is how Reloader runs.
type Reloader struct {
	// Dialect has its annotations and flags. It knows no --secrets=false.
	Dialect annotation.Stakater
	// Namespaces are the only ones that it watches (--namespaces, KUBERNETES_NAMESPACE); empty means all.
	Namespaces []string
	// IgnoredNamespaces and NamespaceSelector limit all namespaces: beside Namespaces they have no effect.
	IgnoredNamespaces []string
	NamespaceSelector labels.Selector
	// Kinds are those of the workloads that it handles: it knows no further ones, such as those of --workload-kinds.
	Kinds workload.Kinds
	// ReloadOnCreate and ReloadOnDelete are its flags of these names, which the word true alone switches on. Those of the Dialect are
	// as this program reads them.
	ReloadOnCreate, ReloadOnDelete bool
	// OneKind says that --resources-to-ignore leaves one kind out, and --sync-after-restart is off: it then processes neither creations
	// nor deletions, since it waits for the controllers of both kinds.
	OneKind bool
	// Variables says that a reload sets an environment variable (--reload-strategy=env-vars, its default).
	Variables bool
	// NotifyOnly says that it posts to a URL instead of reloading (--webhook-url).
	NotifyOnly bool
}

// Here is how this program would run.
type Here struct {
	Keys     annotation.Keys
	Dialects []annotation.Dialect
	Scope    scope.Scope
	Kinds    workload.Kinds
	// ReloadMissingRequired is --missing-required=reload, NotifyOnly --webhook-url.
	ReloadMissingRequired, NotifyOnly bool
	// WithoutSecrets is --secrets=false.
	WithoutSecrets bool
	// RerunFinishedJobs is --rerun-finished-jobs.
	RerunFinishedJobs bool
}

// Action is what follows when a config object changes.
type Action string

const (
	// Nothing follows for the workload.
	Nothing Action = "nothing"
	// Restart gives the workload a new pod template.
	Restart Action = "restart"
	// RestartAt restarts the pods of an Argo Rollout without a new template.
	RestartAt Action = "restart without a new template"
	// Run makes a Job of a CronJob at once.
	Run Action = "run at once"
	// RunAlone makes it as the concurrency policy allows: later, or in the place of the Jobs that are active.
	RunAlone Action = "run as concurrencyPolicy allows"
	// NextRun gives the next scheduled run of a CronJob the new configuration.
	NextRun Action = "next scheduled run"
	// Recreate deletes a Job and makes it again.
	Recreate Action = "delete and create again"
	// Notify posts to --webhook-url.
	Notify Action = "post to --webhook-url"
)

// change is one event of one config object.
type change struct {
	ref    reference.Ref
	event  policy.ChangeType
	traits annotation.Traits
}

// Compare returns what would be treated differently.
func Compare(in Input) Report {
	c := comparison{Input: in, groups: map[Reason]*Group{}, named: map[string]map[reference.Ref]bool{}, compiled: compiled{}}
	for _, object := range in.Workloads {
		c.compare(object)
	}
	if in.Reloader.NotifyOnly {
		c.unnamed()
	}
	return c.report()
}

// comparison is one run of Compare.
type comparison struct {
	Input
	groups            map[Reason]*Group
	compared, differs int
	// runs and recreates say that this program runs some CronJob, or creates some Job again.
	runs, recreates bool
	// named are the objects that some workload depends on, by namespace.
	named map[string]map[reference.Ref]bool
	compiled
}

// compare adds the differences of one workload.
func (c *comparison) compare(object workload.Object) {
	s := c.read(object)
	if !s.concerned || !c.reloaderModel().inScope(s) && !c.reloaderModel(byScope, byObjectSelector).inScope(s) {
		return
	}
	c.compared++
	found, restarted := map[Reason]*Difference{}, false
	for _, ref := range s.candidates {
		for _, event := range c.events(s, ref) {
			restarted = c.effect(found, s, change{ref: ref, event: event, traits: s.objects[ref]}) || restarted
		}
	}
	for _, p := range c.reported(s) {
		d := of(found, byProblem, object)
		d.Problems = append(d.Problems, p.Message)
	}
	if restarted && !s.samePause(c.Reloader.Dialect.Keys.PausePeriod) {
		of(found, byPausePeriod, object)
	}
	if c.resumes(s) {
		of(found, byPaused, object)
	}
	c.add(found)
}

// reported returns the Problems of a workload that this program would handle.
func (c *comparison) reported(s subject) []annotation.Problem {
	if !c.inOurScope(s) || excluded(s, c.Here.Keys) {
		return nil
	}
	return s.problems
}

// resumes reports whether this program ends a pause of the workload at its start.
func (c *comparison) resumes(s subject) bool {
	since, ours := s.source.Workload[c.Reloader.Dialect.Keys.PausedAt]
	state := pause.State{Period: s.intent.PausePeriod, Paused: s.object.Paused(), Since: since, Ours: ours}
	action, _ := state.Decide(c.Now)
	return action == pause.Resume && s.object.Kind.Pausable() && c.inOurScope(s)
}

// effect adds what differs about one change of one object, and reports whether Reloader restarts the pods for it.
func (c *comparison) effect(found map[Reason]*Difference, s subject, ch change) (restarted bool) {
	theirs, ours := c.reloaderModel().decide(s, ch), c.ourAction(s, ch)
	c.runs, c.recreates = c.runs || ours == Run || ours == RunAlone, c.recreates || ours == Recreate
	if ours != Nothing {
		c.name(s.object.Namespace(), ch.ref)
	}
	restarted = theirs == Restart
	if theirs == ours {
		return restarted
	}
	for _, reason := range c.reasons(s, ch, ours) {
		d := of(found, reason, s.object)
		d.Effects = append(d.Effects, Effect{Object: ch.ref.String(), Change: string(ch.event), Reloader: theirs, Here: ours})
	}
	return restarted
}

// of returns the difference of a workload for a reason.
func of(found map[Reason]*Difference, reason Reason, object workload.Object) *Difference {
	d, ok := found[reason]
	if !ok {
		d = &Difference{Kind: object.Kind.Kind, Namespace: object.Namespace(), Name: object.Name()}
		found[reason] = d
	}
	return d
}

func (c *comparison) add(found map[Reason]*Difference) {
	if len(found) > 0 {
		c.differs++
	}
	for reason, d := range found {
		c.group(reason).Workloads = append(c.group(reason).Workloads, *d)
	}
}

func (c *comparison) group(reason Reason) *Group {
	g, ok := c.groups[reason]
	if !ok {
		g = &Group{Reason: reason, Explanation: explanations()[reason]}
		c.groups[reason] = g
	}
	return g
}

// events returns what can happen to an object: to one that exists, to one that a list names and that is absent, and, as an
// example of others, to one that is tracked only once it exists.
func (c *comparison) events(s subject, ref reference.Ref) []policy.ChangeType {
	_, exists := s.objects[ref]
	switch {
	case ref.Kind == reference.SecretProviderClass: // statuses that come and go count in neither program
		return []policy.ChangeType{policy.Modified}
	case !exists:
		return []policy.ChangeType{policy.Created}
	case c.Reloader.Dialect.ReloadOnCreate && !s.tracked(ref, nil, false) && s.tracked(ref, s.objects, false):
		return []policy.ChangeType{policy.Created, policy.Modified, policy.Deleted}
	default:
		return []policy.ChangeType{policy.Modified, policy.Deleted}
	}
}

// reasons returns the rules of Reloader that make it act otherwise: one where its exchange for ours is enough, else a smallest
// set whose exchange is.
func (c *comparison) reasons(s subject, ch change, ours Action) []Reason {
	all := rules()
	for _, rule := range all {
		if c.reloaderModel(rule).decide(s, ch) == ours {
			return []Reason{rule}
		}
	}
	needed := slices.Clone(all)
	for _, rule := range all {
		fewer := slices.DeleteFunc(slices.Clone(needed), func(r Reason) bool { return r == rule })
		if c.reloaderModel(fewer...).decide(s, ch) == ours {
			needed = fewer
		}
	}
	return needed
}

// name records that a workload depends on an object.
func (c *comparison) name(namespace string, ref reference.Ref) {
	if c.named[namespace] == nil {
		c.named[namespace] = map[reference.Ref]bool{}
	}
	c.named[namespace][ref] = true
}

// unnamed adds the objects whose changes Reloader posts though no workload depends on them.
func (c *comparison) unnamed() {
	for _, namespace := range slices.Sorted(maps.Keys(c.Objects)) {
		if !c.reloaderModel().watches(namespace, c.NamespaceLabels[namespace]) {
			continue
		}
		refs := slices.SortedFunc(maps.Keys(c.Objects[namespace]), reference.Ref.Compare)
		for _, ref := range refs {
			if !c.named[namespace][ref] && !c.Objects[namespace][ref].Unselected && c.reloaderModel().watchesKind(ref.Kind) {
				g := c.group(byUnnamedObject)
				g.Objects = append(g.Objects, Object{Kind: string(ref.Kind), Namespace: namespace, Name: ref.Name})
			}
		}
	}
}
