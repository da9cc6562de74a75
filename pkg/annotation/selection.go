package annotation

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Selection is what one dialect tracks of one kind of config objects, as far as it depends on the objects of the namespace.
// An object with the trait Ignored is never in it.
type Selection struct {
	Kind    reference.Kind
	Trigger Trigger
	// Listed and Referenced are names that are tracked, also while there is no such object.
	Listed, Referenced []string
	// Marked are names that are tracked if the object has the trait Marked.
	Marked []string
	// Patterns track every object whose name one of them matches.
	Patterns []*pattern.Pattern
	// Excluded are names that no pattern tracks, sorted. The lists do not have them.
	Excluded []string
	// Recorded tracks every custom resource that is recorded.
	Recorded bool
}

func (s Selection) excludes(name string) bool {
	_, found := slices.BinarySearch(s.Excluded, name)
	return found
}

// Traits are what the labels and annotations of a config object say about its use.
type Traits struct {
	// Ignored objects are not tracked by a Selection.
	Ignored bool
	// Unselected objects lack the labels of --resource-label-selector. They are Ignored as well.
	Unselected bool
	// Marked objects are tracked where a Selection asks for the mark.
	Marked bool
	// Unseen means that there may be such an object, with any labels and annotations: neither its watch nor a read has delivered it.
	Unseen bool
}

// Objects is what is known of the config objects of one namespace.
type Objects interface {
	// Traits returns those of an object; false if there is no such object, or it is Unseen.
	Traits(ref reference.Ref) (Traits, bool)
	// Matching returns the names of the objects that one of some patterns matches, in any order, each once.
	Matching(kind reference.Kind, patterns []*pattern.Pattern) []string
	// Err says why Matching has not looked at all objects; nil if it always has.
	Err() error
}

// Unlisted are the Objects of a namespace of which nothing is known: what is named or recorded is tracked.
type Unlisted struct{}

var _ Objects = Unlisted{}

// Traits finds no object.
func (Unlisted) Traits(reference.Ref) (Traits, bool) { return Traits{}, false }

// Matching finds no object.
func (Unlisted) Matching(reference.Kind, []*pattern.Pattern) []string { return nil }

// Err is nil: there is nothing to look at.
func (Unlisted) Err() error { return nil }

// Listed are the Objects of a namespace that was listed.
type Listed map[reference.Ref]Traits

var _ Objects = Listed{}

// Traits returns those of an object.
func (l Listed) Traits(ref reference.Ref) (Traits, bool) {
	traits, ok := l[ref]
	return traits, ok
}

// Matching returns the names that a pattern matches, in no order.
func (l Listed) Matching(kind reference.Kind, patterns []*pattern.Pattern) []string {
	var names []string
	for ref := range l {
		if ref.Kind == kind && slices.ContainsFunc(patterns, func(p *pattern.Pattern) bool { return p.Match(ref.Name) }) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// Err is nil: all are looked at.
func (Listed) Err() error { return nil }

// Recorded is what a workload's valid Record has; record.Record is one.
type Recorded interface {
	// Has reports whether there is an item for a Ref, HasContent whether the object was there when it was recorded.
	Has(ref reference.Ref) bool
	HasContent(ref reference.Ref) bool
	// Refs returns the Refs with an item, in any order, as a new slice; nil where the Record keeps no names.
	Refs() []reference.Ref
}

// Resolve returns the Intent with what its Selections track added to Tracked, and a Problem if a workload cannot track so
// much. An object that is absent has neither a mark nor a place among the names: a pattern or a mark still tracks
// it if it is recorded, so that its deletion is a Change and its return is compared with what the pods have. What patterns match
// of absent objects comes last, and is forgotten where that makes no difference: names that are used once must not fill the Record.
// An object that is Unseen counts as absent, so that no change of it is missed.
func Resolve(intent Intent, objects Objects, recorded Recorded, references []reference.Reference) (Intent, []Problem) {
	if len(intent.Selections) == 0 {
		return intent, nil
	}
	intent.Tracked = maps.Clone(intent.Tracked)
	all, budget := make([]resolution, 0, len(intent.Selections)), &pattern.Budget{}
	for _, selection := range intent.Selections {
		r := resolution{Selection: selection, intent: &intent, objects: objects, recorded: recorded, budget: budget}
		r.names()
		r.marked()
		r.patterns()
		r.custom()
		r.absent = r.matchingAbsent()
		all = append(all, r)
	}
	intent.Dropped += intent.limit(references)
	for _, content := range [...]bool{true, false} {
		for _, r := range all {
			intent.Dropped += r.trackAbsent(content)
		}
	}
	return intent, intent.dropped()
}

// resolution is the resolving of one Selection.
type resolution struct {
	Selection
	intent   *Intent
	objects  Objects
	recorded Recorded
	// budget is for recorded names.
	budget *pattern.Budget
	// absent are the recorded Refs that patterns match and of which there is no object, sorted.
	absent []reference.Ref
}

func (r resolution) ref(name string) reference.Ref { return reference.Ref{Kind: r.Kind, Name: name} }

// track adds a Ref. No annotation asks for a custom resource here, so that only now the workload is one that asks for something.
func (r resolution) track(ref reference.Ref) { r.trackFor(ref, r.Trigger) }

// trackPresent adds a Ref that is tracked only where the object exists, or is recorded.
func (r resolution) trackPresent(ref reference.Ref) {
	trigger := r.Trigger
	trigger.OnAppear = trigger.OnCreate
	r.trackFor(ref, trigger)
}

func (r resolution) trackFor(ref reference.Ref, trigger Trigger) {
	_, known := r.intent.Tracked[ref]
	r.intent.track(ref, trigger)
	if !known && ref.Kind.Custom() {
		r.intent.Asked, r.intent.Dynamic = true, true
	}
}

func (r resolution) names() {
	for _, names := range [...][]string{r.Listed, r.Referenced} {
		for _, name := range names {
			ref := r.ref(name)
			if traits, _ := r.objects.Traits(ref); !traits.Ignored {
				r.track(ref)
				r.unseen(ref, traits)
			}
		}
	}
}

// unseen records in the Intent if an object that the Selection tracks is Unseen.
func (r resolution) unseen(ref reference.Ref, traits Traits) {
	if !traits.Unseen {
		return
	}
	if r.intent.Unseen == nil {
		r.intent.Unseen = map[reference.Ref]bool{}
	}
	r.intent.Unseen[ref] = true
}

func (r resolution) marked() {
	for _, name := range r.Marked {
		ref := r.ref(name)
		traits, exists := r.objects.Traits(ref)
		if exists && traits.Marked && !traits.Ignored || !exists && r.recorded.Has(ref) {
			r.trackPresent(ref)
			r.unseen(ref, traits)
		}
	}
}

func (r resolution) patterns() {
	if len(r.Patterns) == 0 {
		return
	}
	for _, name := range r.objects.Matching(r.Kind, r.Patterns) {
		if traits, _ := r.objects.Traits(r.ref(name)); !traits.Ignored && !r.excludes(name) {
			r.trackPresent(r.ref(name))
		}
	}
}

// trackAbsent tracks absent objects that patterns match, as far as a workload can track so many: those that are recorded with a content, or
// those that are recorded as absent. It returns how many of the former it drops, since their deletion or return can be a Change. The
// latter matter only where creations trigger: elsewhere an object that comes is adopted, recorded as absent or not.
func (r resolution) trackAbsent(content bool) (dropped int) {
	if !content && !r.Trigger.OnCreate {
		return 0
	}
	for _, ref := range r.absent {
		if r.recorded.HasContent(ref) != content {
			continue
		}
		if _, tracked := r.intent.Tracked[ref]; tracked || len(r.intent.Tracked) < reference.MaxTracked {
			r.trackPresent(ref)
		} else if content {
			dropped++
		}
	}
	return dropped
}

// matchingAbsent finds the recorded Refs that patterns match and of which there is no object. Nearly all have one, and to look for it costs
// less than to match a name. Where it would take long to match the others, they count as matched: a Record can be written by hand.
func (r resolution) matchingAbsent() []reference.Ref {
	if len(r.Patterns) == 0 {
		return nil
	}
	refs := r.recorded.Refs()
	slices.SortFunc(refs, reference.Ref.Compare)
	return slices.DeleteFunc(slices.Compact(refs), func(ref reference.Ref) bool {
		if ref.Kind != r.Kind || r.excludes(ref.Name) {
			return true
		}
		traits, exists := r.objects.Traits(ref)
		if exists || !r.mayMatch(ref.Name) {
			return true
		}
		r.unseen(ref, traits)
		return false
	})
}

func (r resolution) custom() {
	if !r.Recorded {
		return
	}
	for _, ref := range r.recorded.Refs() {
		if ref.Kind.Custom() {
			r.track(ref)
		}
	}
}

func (r resolution) mayMatch(name string) bool {
	return slices.ContainsFunc(r.Patterns, func(p *pattern.Pattern) bool {
		matching, ok := r.budget.Matching(p, []string{name})
		return len(matching) > 0 || !ok
	})
}

// Most returns how many Refs the Intent can track once it is resolved: an expression can match, and a Record can have, as many as a
// workload can track.
func (i Intent) Most() int {
	most := len(i.Tracked)
	for _, s := range i.Selections {
		if len(s.Patterns) > 0 || s.Recorded {
			return reference.MaxTracked
		}
		most += len(s.Listed) + len(s.Referenced) + len(s.Marked)
	}
	return min(most, reference.MaxTracked)
}

// Candidates returns the Refs whose creation, change, deletion, labels or annotations can change what is tracked or due,
// sorted: all but the objects that patterns match.
func (i Intent) Candidates() []reference.Ref {
	if len(i.Selections) == 0 {
		return i.Refs()
	}
	refs := slices.Collect(maps.Keys(i.Tracked))
	for _, s := range i.Selections {
		for _, names := range [...][]string{s.Listed, s.Referenced, s.Marked} {
			for _, name := range names {
				refs = append(refs, reference.Ref{Kind: s.Kind, Name: name})
			}
		}
	}
	slices.SortFunc(refs, reference.Ref.Compare)
	return slices.Compact(refs)
}

// Appearing reports whether the creation of an object that nothing names can trigger: one that an expression or a mark selects.
func (i Intent) Appearing() bool {
	return slices.ContainsFunc(i.Selections, func(s Selection) bool {
		return s.Trigger.OnCreate && len(s.Patterns)+len(s.Marked) > 0
	})
}

// Patterns returns the patterns of the Selections, each with the kind whose names it matches.
func (i Intent) Patterns() []pattern.Use {
	var uses []pattern.Use
	for _, s := range i.Selections {
		for _, p := range s.Patterns {
			uses = append(uses, pattern.Use{Kind: s.Kind, Pattern: p})
		}
	}
	return uses
}
