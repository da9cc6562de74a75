// Package annotation reads what users ask for in the annotations of a workload, in whichever dialect, into one Intent.
//
// It is one of the pure packages, above reference. What is wrong in an annotation is a Problem, a value and not an
// error: the valid rest still works, and the caller reports it by an admission warning and an Event.
package annotation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// DefaultPrefix is the prefix of our annotations and labels unless a flag says otherwise; it is the one of SAP's
// pod-reloader.
const DefaultPrefix = "pod-reloader.cs.sap.com/"

// Keys are the names of our annotations and labels under one prefix.
type Keys struct {
	// ConfigMaps and Secrets are the user's lists, on the workload.
	ConfigMaps, Secrets string
	// Referents is the user's list of custom resources, on the workload.
	Referents string
	// Checksum is the published digest of a custom resource, on that resource.
	Checksum string
	// ConfigHash is the hash on the pod template; on the workload, the dummy that asks for a reload.
	ConfigHash string
	// ConfigRestart restarts pods whose hash would stay the same, on the pod template.
	ConfigRestart string
	// ConfigRecord is the Record, on the workload.
	ConfigRecord string
	// LastReload explains the last reload, on the workload.
	LastReload string
	// RecreatedFrom is the UID of the Job that a Job replaces, on the Job.
	RecreatedFrom string
	// RecreationCanceled is the UID of the Secret by which a Job was to be created again that was not deleted in the end, on the Job.
	RecreationCanceled string
	// IgnoredLabel and DisabledLabel are labels: "true" excludes the workload everywhere.
	IgnoredLabel, DisabledLabel string
}

// NewKeys returns the keys under a prefix, with or without the slash at its end. The prefix must be a DNS subdomain, as
// the API server demands of annotations.
func NewKeys(prefix string) (Keys, error) {
	domain := strings.TrimSuffix(prefix, "/")
	if err := reference.ValidName(domain); err != nil {
		return Keys{}, fmt.Errorf("the annotation prefix %s is not a DNS subdomain such as %q: %w",
			reference.Quote(prefix), DefaultPrefix, err)
	}
	return keysUnder(domain + "/"), nil
}

// DefaultKeys returns the keys under the default prefix.
func DefaultKeys() Keys { return keysUnder(DefaultPrefix) }

func keysUnder(prefix string) Keys {
	return Keys{
		ConfigMaps:         prefix + "configmaps",
		Secrets:            prefix + "secrets",
		Referents:          prefix + "referents",
		Checksum:           prefix + "referent-checksum",
		ConfigHash:         prefix + "config-hash",
		ConfigRestart:      prefix + "config-restart",
		ConfigRecord:       prefix + "config-record",
		LastReload:         prefix + "last-reload",
		RecreatedFrom:      prefix + "recreated-from",
		RecreationCanceled: prefix + "recreation-canceled",
		IgnoredLabel:       prefix + "ignored",
		DisabledLabel:      prefix + "disabled",
	}
}

// Problem is something that a user got wrong.
type Problem struct {
	// Message says what is wrong, where, and what to do. Its length is bounded, whatever the input.
	Message string
}

// Trigger says which Changes of a tracked Ref cause a reload, besides a modification, which always does.
type Trigger struct {
	OnCreate, OnDelete bool
	// OnAppear says that creations trigger although nothing can be recorded of the object before: an expression or a mark selects it
	// once it exists.
	OnAppear bool
	// OnMissing lets also the deletion of an object that the pods need trigger, which is held back otherwise.
	OnMissing bool
	// AtOnce lets a CronJob run at once besides getting a new template for its next run, and a Job be created again.
	AtOnce bool
	// AtOnceOnCreate and AtOnceOnDelete let creations and deletions do so, too. OnCreate and OnDelete may be of a dialect that never does.
	AtOnceOnCreate, AtOnceOnDelete bool
}

// Intent is what the annotations of a workload ask for, whatever the dialect.
type Intent struct {
	// Asked says that the workload wants something from us, even if nothing of it is possible.
	Asked bool
	// Tracked has what can trigger a reload. All names in it are possible ones.
	Tracked map[reference.Ref]Trigger
	// ConfigMaps and Secrets are SAP's lists in the order written, trimmed and without empty items, but with
	// repetitions and impossible names: SAP's digest is computed over them as they are. Of a list with more items than a
	// workload can track, they are the names that may be tracked, sorted.
	ConfigMaps, Secrets []string
	// Dropped counts names in such lists that are not in Tracked. One that is repeated may count more than once.
	Dropped int
	// Dynamic says that which Refs are tracked depends on config objects (a pattern, a search, an ignore annotation), so
	// that a different config-hash proves no Change.
	Dynamic bool
	// Selections are what else is tracked, as far as it depends on config objects: Resolve adds it to Tracked.
	Selections []Selection
	// Unseen has the objects of which nothing is known, and that Selections track as a precaution.
	Unseen map[reference.Ref]bool
	// PausePeriod is how long a Deployment is to be paused with each reload; 0 if no valid period is asked for.
	PausePeriod time.Duration
	// Restart asks for reloads that restart the pods of an Argo Rollout and leave its pod template as it is.
	Restart bool
}

// Refs returns the tracked Refs, sorted.
func (i Intent) Refs() []reference.Ref {
	return slices.SortedFunc(maps.Keys(i.Tracked), reference.Ref.Compare)
}

// Listed returns the ConfigMaps, Secrets and SecretProviderClasses that an annotation names, tracked or not.
func (i Intent) Listed() map[reference.Ref]bool {
	listed := make(map[reference.Ref]bool, len(i.ConfigMaps)+len(i.Secrets))
	add := func(kind reference.Kind, names []string) {
		for _, name := range names {
			listed[reference.Ref{Kind: kind, Name: name}] = true
		}
	}
	add(reference.ConfigMap, i.ConfigMaps)
	add(reference.Secret, i.Secrets)
	for _, selection := range i.Selections {
		add(selection.Kind, selection.Listed)
	}
	return listed
}

// AtOnce returns the Intent with what triggers at once only. A Job is reloaded for nothing else.
func (i Intent) AtOnce() Intent {
	all := i.Tracked
	i.Tracked = make(map[reference.Ref]Trigger, len(all))
	for ref, trigger := range all {
		if trigger.AtOnce {
			trigger.OnCreate, trigger.OnDelete = trigger.AtOnceOnCreate, trigger.AtOnceOnDelete
			i.Tracked[ref] = trigger
		}
	}
	if len(i.Tracked) < len(all) {
		i.ConfigMaps, i.Secrets = nil, nil
		i.Dynamic = true // the config-hash is one of all that is tracked
	}
	return i
}

// NotAtOnce returns the Intent with nothing that triggers at once: a CronJob then waits for its next run.
func (i Intent) NotAtOnce() Intent {
	i.Tracked = maps.Clone(i.Tracked)
	for ref, trigger := range i.Tracked {
		trigger.AtOnce, trigger.AtOnceOnCreate, trigger.AtOnceOnDelete = false, false, false
		i.Tracked[ref] = trigger
	}
	return i
}

// SameLists reports whether SAP's two lists name the same, whatever the order and the repetitions.
func (i Intent) SameLists(o Intent) bool {
	return sameSet(i.ConfigMaps, o.ConfigMaps) && sameSet(i.Secrets, o.Secrets)
}

func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	return maps.Equal(set(a), set(b))
}

func set(items []string) map[string]bool {
	s := make(map[string]bool, len(items))
	for _, item := range items {
		s[item] = true
	}
	return s
}

// Source is what a dialect reads.
type Source struct {
	// Workload and Template are the annotations of the workload and of its pod template.
	Workload, Template map[string]string
	// References are the config objects that the pod spec names.
	References []reference.Reference
	// Labels and Owners are those of the workload.
	Labels map[string]string
	Owners []reference.Owner
}

// has reports whether the workload or its pod template has an annotation.
func (s Source) has(key string) bool {
	_, onWorkload := s.Workload[key]
	_, onTemplate := s.Template[key]
	return onWorkload || onTemplate
}

// Dialect reads one vocabulary of annotations. It never writes to the Source.
type Dialect interface {
	Parse(Source) (Intent, []Problem)
}

// Parse returns the union of what the dialects read: a Ref is tracked if one of them tracks it, and triggers on what
// one of them lets it trigger. It tracks at most reference.MaxTracked Refs. The rest is a Problem; where there are Selections,
// Resolve reports it.
func Parse(src Source, dialects ...Dialect) (Intent, []Problem) {
	var union Intent
	var problems []Problem
	for _, dialect := range dialects {
		intent, found := dialect.Parse(src)
		problems = append(problems, found...)
		union.Asked = union.Asked || intent.Asked
		union.ConfigMaps = append(union.ConfigMaps, intent.ConfigMaps...)
		union.Secrets = append(union.Secrets, intent.Secrets...)
		union.Dynamic = union.Dynamic || intent.Dynamic
		union.Dropped += intent.Dropped
		union.Selections = append(union.Selections, intent.Selections...)
		union.Restart = union.Restart || intent.Restart
		union.PausePeriod = max(union.PausePeriod, intent.PausePeriod)
		if union.Tracked == nil {
			union.Tracked = maps.Clone(intent.Tracked)
			continue
		}
		for ref, trigger := range intent.Tracked {
			union.track(ref, trigger)
		}
	}
	union.Dropped += union.limit(src.References)
	if len(union.Selections) == 0 {
		problems = append(problems, union.dropped()...)
	}
	return union, problems
}

// dropped reports that more is asked for than a workload can track.
func (i *Intent) dropped() []Problem {
	if i.Dropped == 0 {
		return nil
	}
	return []Problem{{Message: fmt.Sprintf(
		"%s not tracked: a workload can track %d; list fewer", reference.CountAre(i.Dropped, "config object"), reference.MaxTracked)}}
}

// limit keeps the first Refs and returns how many it drops: those that the pods need come first, then listed ones, then
// the others, each sorted.
func (i *Intent) limit(references []reference.Reference) int {
	excess := len(i.Tracked) - reference.MaxTracked
	if excess <= 0 {
		return 0
	}
	rank := make(map[reference.Ref]int, len(i.Tracked))
	for ref := range i.Listed() {
		rank[ref] = -1
	}
	for ref := range i.Tracked {
		if ref.Kind.Custom() {
			rank[ref] = -1 // it is listed, or an owner
		}
	}
	for _, r := range references {
		if !r.Optional {
			rank[r.Ref] = -2
		}
	}
	refs := slices.SortedFunc(maps.Keys(i.Tracked), func(a, b reference.Ref) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), a.Compare(b))
	})
	for _, ref := range refs[reference.MaxTracked:] {
		delete(i.Tracked, ref)
	}
	return excess
}

func (i *Intent) track(ref reference.Ref, trigger Trigger) {
	if i.Tracked == nil {
		i.Tracked = map[reference.Ref]Trigger{}
	}
	old := i.Tracked[ref]
	i.Tracked[ref] = Trigger{
		OnCreate:  old.OnCreate || trigger.OnCreate,
		OnDelete:  old.OnDelete || trigger.OnDelete,
		OnAppear:  old.OnAppear || trigger.OnAppear,
		OnMissing: old.OnMissing || trigger.OnMissing,
		AtOnce:    old.AtOnce || trigger.AtOnce,

		AtOnceOnCreate: old.AtOnceOnCreate || trigger.AtOnceOnCreate,
		AtOnceOnDelete: old.AtOnceOnDelete || trigger.AtOnceOnDelete,
	}
}
