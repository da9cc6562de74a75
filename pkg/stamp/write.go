package stamp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// View is what the rules see of one version of a workload.
type View struct {
	// Excluded is set where nothing is to be done: a label takes the workload out, or there is no place for our
	// annotations.
	Excluded bool
	// Ignored is set where a label takes the workload out. Problems are not reported then, either.
	Ignored bool
	// Intent is what the annotations ask for.
	Intent annotation.Intent
	// AskedElsewhere is set where annotations ask for reloads that this installation does not read, but another one may.
	AskedElsewhere bool
	// Unresolved says why it is not known what the annotations select; Intent then tracks what they name and what is
	// recorded, so that no annotation of ours is dropped.
	Unresolved error
	// Required are the Refs without which pods cannot start.
	Required map[reference.Ref]bool
	// Managed are the annotations of ours that it has.
	Managed Managed
	// InPlace is the update strategy by which a reload restarts no container; empty if it restarts the pods.
	InPlace string
	// Generation of the object, 0 before it is created.
	Generation int64
	// Controlled is set if another object made this one and controls it.
	Controlled bool
	// version is the resourceVersion of the object, empty where it is not stored.
	version string
	// created is when the API server created the object, by its clock and in whole seconds; zero before that.
	created time.Time
	// TemplateBudget and WorkloadBudget are the bytes that the values of our annotations may take in each place, their
	// keys and all other annotations taken off.
	TemplateBudget, WorkloadBudget int
	// keySizes are the lengths of our keys.
	keySizes map[Key]int
	// strategy is what a reload writes besides the hash, and template the raw pod template that it writes on; empty and
	// nil if it writes nothing.
	strategy annotation.ReloadStrategy
	template map[string]any
	// fields are what the template has of it.
	fields strategy.Fields
}

// maxAnnotations is the API server's limit for all keys and values of one object's annotations
// (k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
const maxAnnotations = 256 << 10

// maxOnWorkload leaves some bytes of it to the Deployment controller: it copies the annotations to the ReplicaSet, and
// adds its own there (revision, revision-history, desired-replicas and max-replicas of deployment.kubernetes.io). Each rollback to
// the ReplicaSet makes its revision-history longer, up to 2,000 characters (maxRevHistoryLengthInChars of
// k8s.io/kubernetes/pkg/controller/deployment/sync.go).
const maxOnWorkload = maxAnnotations - 2560

// Reader reads Views of raw workloads.
type Reader struct {
	Keys     annotation.Keys
	Dialects []annotation.Dialect
	// Objects returns what is known of the config objects of a namespace, or why nothing is known yet. nil leaves
	// Intents unresolved.
	Objects func(namespace string) (annotation.Objects, error)
	// Strategy is what a reload writes on a pod template besides the hash; empty is annotation.ConfigHash. What another
	// strategy than that writes is read of whole objects only, not of Summaries.
	Strategy annotation.ReloadStrategy
}

// Read returns what the rules see of a workload and what its user got wrong.
func (r Reader) Read(o workload.Object) (View, []annotation.Problem) {
	return r.judge(o.Kind, o, r.parse(o))
}

// ReadSummary is Read for a workload of which only a part was kept.
func (r Reader) ReadSummary(s workload.Summary) (View, []annotation.Problem) {
	return r.judge(s.Kind, s, r.parse(s))
}

// Intent returns what the annotations of a workload ask for, with what they select unresolved: it is for indexes.
func (r Reader) Intent(s workload.Summary) annotation.Intent { return r.parse(s).intent }

// parsed is what a workload names, what its annotations ask for, with what they select unresolved, and what is wrong with either.
type parsed struct {
	references []reference.Reference
	err        error
	intent     annotation.Intent
	problems   []annotation.Problem
	// askedElsewhere is that of the View.
	askedElsewhere bool
}

func (r Reader) parse(o source) parsed {
	var p parsed
	p.references, p.err = o.References()
	from := annotation.Source{
		Workload: o.Annotations(), Template: o.TemplateAnnotations(), References: p.references, Labels: o.Labels(), Owners: o.Owners(),
	}
	p.intent, p.problems = annotation.Parse(from, r.Dialects...)
	p.askedElsewhere = !p.intent.Asked && from.AsksReloader()
	return p
}

// most returns how many objects the workload can name or track.
func (p parsed) most() int { return max(len(p.references), p.intent.Most()) }

// source is a workload, or what was kept of one.
type source interface {
	Namespace() string
	Labels() map[string]string
	Owners() []reference.Owner
	Annotations() map[string]string
	TemplateAnnotations() map[string]string
	References() ([]reference.Reference, error)
	AnnotationSizes() (onWorkload, onTemplate int)
	Generation() int64
	ResourceVersion() string
	Created() time.Time
	HasTemplate() bool
	Controlled() bool
	InPlace() string
	Check() error
}

// judge reads a workload that was parsed, and returns what is wrong with it. stored are the managed annotations of the version before
// it, if that is not the version read.
func (r Reader) judge(kind workload.Kind, o source, p parsed, stored ...Managed) (View, []annotation.Problem) {
	view, problems := r.read(o, p, stored...)
	if view.Intent.PausePeriod > 0 && !kind.Pausable() {
		view.Intent.PausePeriod = 0
		problems = append(problems, annotation.Problem{Message: "a pause period has no effect on a " + kind.Kind + ": only Deployments are paused"})
	}
	if view.Intent.Restart && !kind.Restartable() {
		view.Intent.Restart = false
		problems = append(problems, annotation.Problem{Message: "the rollout strategy restart has no effect on a " + kind.Kind + ": only Argo Rollouts have it"})
	}
	if view.InPlace != "" && view.Intent.Asked {
		problems = append(problems, annotation.Problem{Message: "the update strategy " + view.InPlace +
			" restarts no container at a reload: use one that replaces the pods, or InPlaceIfPossible with --reload-strategy=env-vars"})
	}
	misplaced := o.Check()
	view.Excluded = view.Excluded || misplaced != nil
	if err := errors.Join(p.err, misplaced); err != nil && view.Intent.Asked {
		problems = append(problems, annotation.Problem{Message: fmt.Sprintf(
			"%s is not valid for a %s: %s; correct it", strings.Join(kind.Template, "."), kind.Kind, reference.Cut(err.Error(), maxErrorText))})
	}
	return view, problems
}

func (r Reader) read(o source, p parsed, stored ...Managed) (View, []annotation.Problem) {
	labels := o.Labels()
	managed := managedBy(o, r.Keys)
	intent, problems, unresolved := r.resolve(o.Namespace(), p.intent, p.references, managed, stored)
	required := make(map[reference.Ref]bool, len(p.references))
	for _, ref := range p.references {
		required[ref.Ref] = !ref.Optional
	}
	ignored := labels[r.Keys.IgnoredLabel] == "true" || labels[r.Keys.DisabledLabel] == "true"
	view := View{
		Excluded:       ignored || !o.HasTemplate(),
		Ignored:        ignored,
		Intent:         intent,
		AskedElsewhere: p.askedElsewhere,
		Unresolved:     unresolved,
		Required:       required,
		Managed:        managed,
		InPlace:        r.inPlace(o),
		Generation:     o.Generation(),
		Controlled:     o.Controlled(),
		version:        o.ResourceVersion(),
		created:        o.Created(),
	}
	r.readFields(o, &view)
	view.WorkloadBudget, view.TemplateBudget = r.budgets(o, view.Managed)
	view.keySizes = make(map[Key]int, len(managedKeys))
	for _, s := range managedKeys {
		view.keySizes[s.key] = len(s.annotation(r.Keys))
	}
	return view, slices.Concat(p.problems, problems) // a write is read twice from what is parsed once
}

// inPlace returns the update strategy by which a reload restarts no container. A new variable is more than some of them can update in place.
func (r Reader) inPlace(o source) string {
	if how := o.InPlace(); how != workload.InPlaceIfPossible || r.Strategy != annotation.EnvVars {
		return how
	}
	return ""
}

// budgets returns how many bytes the values of our annotations may take on the workload and on its template, if all our
// keys are there.
func (r Reader) budgets(o source, managed Managed) (onWorkload, onTemplate int) {
	usedOnWorkload, usedOnTemplate := o.AnnotationSizes()
	onWorkload, onTemplate = maxOnWorkload-usedOnWorkload, maxAnnotations-usedOnTemplate
	for _, s := range managedKeys {
		budget := &onWorkload
		if s.template {
			budget = &onTemplate
		}
		if value, ok := managed[s.key]; ok {
			*budget += len(value)
		} else {
			*budget -= len(s.annotation(r.Keys))
		}
	}
	return onWorkload, onTemplate
}

// maxErrorText bounds the text of an error, which may repeat one of a user.
const maxErrorText = 200

// Write is one write of a workload. It holds no live state.
type Write struct {
	// Create is set for the first write of an object; Old is then zero.
	Create bool
	// Immutable is set for kinds whose template cannot change after creation.
	Immutable bool
	// Old and New are the stored version and the one to be stored.
	Old, New View
	// TemplateChanged says that the pod templates differ, managed annotations put aside.
	TemplateChanged bool
	// Restarts says that the write replaces the pods all the same, which no answer prevents.
	Restarts bool
	// EndsRestart says that the write keeps the last restart by the loop from being completed.
	EndsRestart bool
	// restartsLater is the time of a restart that the write sets in the place of one by the loop that is not complete; zero if it sets none.
	restartsLater time.Time
}

// Parsed is what both versions of a workload name and ask for.
type Parsed struct{ old, current parsed }

// Parse parses a write. old is nil for the first one.
func (r Reader) Parse(old *workload.Object, current workload.Object) Parsed {
	p := Parsed{current: r.parse(current)}
	if old != nil {
		p.old = r.parse(*old)
	}
	return p
}

// Most returns how many objects both versions together can name or track.
func (p Parsed) Most() int { return p.old.most() + p.current.most() }

// NewWrite reads a write. old is nil for the first one.
func (r Reader) NewWrite(old *workload.Object, current workload.Object) (Write, []annotation.Problem) {
	return r.ReadWrite(old, current, r.Parse(old, current))
}

// ReadWrite returns a write that was parsed, and the Problems that it brings: one that was there before was reported with the write that
// brought it.
func (r Reader) ReadWrite(old *workload.Object, current workload.Object, p Parsed) (Write, []annotation.Problem) {
	req := Write{Create: old == nil, Immutable: current.Kind.CreateOnly}
	var problems, before []annotation.Problem
	if old == nil {
		req.New, problems = r.judge(current.Kind, current, p.current)
		return req, problems
	}
	req.TemplateChanged, req.Restarts = !r.sameTemplate(*old, current), restarts(*old, current)
	// Watches deliver meanwhile. What appears between the two is then tracked by the old version only, and left to the loop; the other
	// way round the write would seem to have added it.
	req.New, problems = r.judge(current.Kind, current, p.current, managedBy(*old, r.Keys))
	req.Old, before = r.judge(old.Kind, *old, p.old)
	req.readEndOfRestart(*old, current)
	req.Old.Managed.setFields(req.Old.Managed.fields().On(current.Template()))
	if req.recordsNothing() {
		delete(req.New.Managed, Record)
	}
	known := func(problem annotation.Problem) bool { return slices.Contains(before, problem) }
	return req, slices.DeleteFunc(problems, known)
}

// tracked returns what the write tracks.
func (r Write) tracked() []reference.Ref { return r.New.Intent.Refs() }

// trackedBefore reports whether the old version tracks a Ref, or may do so: it is not known what an unresolved one selects.
func (r Write) trackedBefore(ref reference.Ref) bool {
	_, tracked := r.Old.Intent.Tracked[ref]
	return tracked || r.Old.Unresolved != nil
}
