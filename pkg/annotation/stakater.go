package annotation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Stakater is the dialect of Stakater's Reloader: automatic reloads for what the pod spec references, lists of regular
// expressions, and search together with marks on config objects. What it tracks depends on config objects, so its Intents
// have Selections and must be resolved.
type Stakater struct {
	Keys StakaterKeys
	// AutoReloadAll tracks what workloads reference that say nothing about it (--auto-reload-all).
	AutoReloadAll bool
	// ReloadOnCreate and ReloadOnDelete let creations and deletions trigger.
	ReloadOnCreate, ReloadOnDelete bool
	// SecretProviderClasses tracks the classes of the Secrets Store CSI driver, too (--enable-csi-integration).
	SecretProviderClasses bool
	// Without are the kinds of config objects that are not tracked (--resources-to-ignore).
	Without []reference.Kind
	// Selector selects config objects by their labels (--resource-label-selector); nil selects all.
	Selector labels.Selector
	// Patterns are the compiled expressions; nil compiles them each time.
	Patterns *pattern.Cache
}

var _ Dialect = Stakater{}

// Kinds returns the kinds of config objects that the dialect tracks.
func (s Stakater) Kinds() []reference.Kind {
	if s.SecretProviderClasses {
		return append(reference.Kinds(), reference.SecretProviderClass)
	}
	return reference.Kinds()
}

// HandledKinds returns those of the Kinds whose objects can be tracked; the others need not be read.
func (s Stakater) HandledKinds() []reference.Kind {
	return slices.DeleteFunc(s.Kinds(), func(kind reference.Kind) bool { return slices.Contains(s.Without, kind) })
}

// Traits returns what the labels and annotations of a config object of a kind say in this dialect. The labels of a SecretProviderClass
// say nothing. Reloader does not read them either: it compares those of the SecretProviderClassPodStatus objects.
func (s Stakater) Traits(kind reference.Kind, objectLabels, annotations map[string]string) Traits {
	selects := s.Selector == nil || kind == reference.SecretProviderClass || s.Selector.Matches(labels.Set(objectLabels))
	return Traits{
		Ignored: annotations[s.Keys.Ignore] == marked || !selects, Unselected: !selects, Marked: annotations[s.Keys.Match] == marked,
	}
}

// LooksAt reports whether a label of config objects matters.
func (s Stakater) LooksAt(label string) bool {
	if s.Selector == nil {
		return false
	}
	requirements, _ := s.Selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == label })
}

// Parse reads the annotations of a workload, kind by kind: those of the workload itself, or of its pod template where the
// workload has none that concerns the kind. An unknown value, an invalid expression, an impossible name and a misspelt or
// misplaced key are Problems.
func (s Stakater) Parse(src Source) (Intent, []Problem) {
	if !s.AutoReloadAll && !s.Keys.in(src.Workload) && !s.Keys.in(src.Template) {
		return Intent{}, nil
	}
	r := stakaterReading{Stakater: s, source: src}
	for _, kind := range r.Kinds() {
		r.read(kind)
	}
	r.intent.PausePeriod, r.intent.Restart = r.pausePeriod(), r.restart()
	r.misplaced()
	r.misspelt()
	r.unhandled()
	r.intent.Dynamic = len(r.intent.Selections) > 0
	return r.intent, r.problems
}

// stakaterReading is one reading of a workload.
type stakaterReading struct {
	Stakater
	source   Source
	intent   Intent
	problems []Problem
}

func (r *stakaterReading) report(format string, args ...any) {
	r.addProblems(Problem{Message: fmt.Sprintf(format, args...)})
}

// AsksReloader reports whether annotations of Reloader ask for reloads, with the names and settings that it has unless a flag says otherwise.
// Another installation may read them where this one does not.
func (s Source) AsksReloader() bool {
	if !hasKeyOfReloader(s.Workload) && !hasKeyOfReloader(s.Template) {
		return false
	}
	intent, _ := Stakater{Keys: NewStakaterKeys()}.Parse(s)
	return intent.Asked
}

func hasKeyOfReloader(annotations map[string]string) bool {
	for key := range annotations {
		if strings.Contains(key, stakaterDomain+"/") {
			return true
		}
	}
	return false
}

// addProblems adds Problems that it does not have.
func (r *stakaterReading) addProblems(problems ...Problem) {
	for _, p := range problems {
		if !slices.Contains(r.problems, p) {
			r.problems = append(r.problems, p)
		}
	}
}

// selecting are the annotations that select objects of a kind.
func (r *stakaterReading) selecting(kind reference.Kind) [4]string {
	keys := r.Keys.Of(kind)
	return [...]string{keys.Reload, r.Keys.Auto, keys.Auto, r.Keys.Search}
}

// annotationsFor returns the annotations that say what is wanted of a kind, and whether they are those of the pod template.
func (r *stakaterReading) annotationsFor(kind reference.Kind) (from map[string]string, fallback bool) {
	for _, key := range r.selecting(kind) {
		if _, ok := r.source.Workload[key]; ok {
			return r.source.Workload, false
		}
	}
	return r.source.Template, true
}

// read adds what is wanted of one kind of config objects.
func (r *stakaterReading) read(kind reference.Kind) {
	from, _ := r.annotationsFor(kind)
	keys := r.Keys.Of(kind)
	excluded := r.excluded(keys.Exclude)
	auto := r.boolean(from, r.Keys.Auto)
	if auto == disabled {
		return
	}
	typed, search := r.boolean(from, keys.Auto), r.search(from)
	all := r.AutoReloadAll && auto == absent && typed == absent
	asked := slices.ContainsFunc([]setting{auto, typed, search}, asks) || all && r.references(kind)
	r.intent.Asked = r.intent.Asked || asked
	if slices.Contains(r.Without, kind) {
		r.reportNotHandled(kind, keys.Reload, from[keys.Reload])
		return
	}
	s := Selection{Kind: kind, Trigger: r.trigger(kind), Excluded: excluded}
	switch {
	case auto == enabled, typed == enabled, all:
		s.Referenced = r.referenced(s)
	case search == enabled:
		s.Marked = r.referenced(s)
	}
	named := r.named(&s, keys.Reload, from[keys.Reload])
	r.intent.Asked = r.intent.Asked || named
	r.add(s)
}

// references reports whether the pod spec names an object of a kind, excluded or not: an exclude list may hide it for a time.
func (r *stakaterReading) references(kind reference.Kind) bool {
	return slices.ContainsFunc(r.source.References, func(ref reference.Reference) bool { return ref.Kind == kind })
}

// add keeps a Selection that selects something.
func (r *stakaterReading) add(s Selection) {
	if len(s.Listed)+len(s.Referenced)+len(s.Marked)+len(s.Patterns) > 0 {
		r.intent.Selections = append(r.intent.Selections, s)
	}
}

// trigger returns what triggers besides a modification. The content of a SecretProviderClass comes and goes with the pods.
func (r *stakaterReading) trigger(kind reference.Kind) Trigger {
	if kind == reference.SecretProviderClass {
		return Trigger{AtOnce: true}
	}
	return Trigger{
		OnCreate: r.ReloadOnCreate, OnDelete: r.ReloadOnDelete, OnMissing: r.ReloadOnDelete,
		AtOnce: true, AtOnceOnCreate: r.ReloadOnCreate, AtOnceOnDelete: r.ReloadOnDelete,
	}
}

// reportNotHandled reports a list of a kind that the flags exclude. The workload asks for reloads still: the flags may hide the objects for
// a time.
func (r *stakaterReading) reportNotHandled(kind reference.Kind, key, value string) {
	if longerThan(value, 0) {
		r.intent.Asked = true
		r.report("annotation %q has no effect: this installation does not handle %ss (--resources-to-ignore or --secrets=false)", key, kind)
	}
}

// referenced returns what the pod spec names of a Selection's kind, but for what is excluded.
func (r *stakaterReading) referenced(s Selection) []string {
	var names []string
	for _, ref := range r.source.References {
		if ref.Kind == s.Kind && !s.excludes(ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}
