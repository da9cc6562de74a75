package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// explain returns the text of last-reload for a reload that stamps a hash, with the reloads before it. A digest that proved it and is not
// the hash itself is in it, so that its author can recognise the reload in the answer.
func (f *facts) explain(hash string, changes []policy.Change, templateAnnotations Managed, cause string) string {
	last := policy.NewLastReload(changes, f.Old.ReloadTime(f.now), f.Old.Managed[LastReload])
	last.Hash, last.Cause, last.Generation = record.HashName(hash), cause, f.Old.Generation
	if given, ok := f.dummy(); ok {
		last.Digest = f.live.verifiedDigest(given.digest, last.Hash)
	}
	for i := range last.Changes {
		last.Changes[i].Because = f.changesBelow(changes[i].Ref)
	}
	if cause == record.CauseListEdit {
		last.Changes = append(last.Changes, trackedOnlyBy(f.New.Intent, f.Old.Intent, record.Listed)...)
		last.Changes = append(last.Changes, trackedOnlyBy(f.Old.Intent, f.New.Intent, record.Unlisted)...)
	}
	last.Templates = f.replacedTemplates(templateAnnotations, last.Hash)
	return last.String()
}

// explainAgain explains a stamp in place of the last reload, which it completes: it has the causes of that.
func (f *facts) explainAgain(hash string, templateAnnotations Managed) string {
	before, _ := record.ParseLastReload(f.Old.Managed[LastReload])
	last := policy.NewLastReload(nil, f.Old.ReloadTime(f.now), f.Old.Managed[LastReload])
	last.Changes, last.More, last.Cause = before.Changes, before.More, before.Cause
	last.Hash, last.Generation = record.HashName(hash), f.Old.Generation
	last.Templates = f.replacedTemplates(templateAnnotations, last.Hash)
	return last.String()
}

// verifiedDigest returns the digest that a request for a reload has proven, which is that of the content where it asks for the live state; none if
// that is the hash itself.
func (l live) verifiedDigest(given, hash string) string {
	if given == digest.AnyCurrent {
		given, _ = l.hash() // the hash was made of the same
	}
	if given == hash {
		return ""
	}
	return given
}

// changesBelow names what has changed below a custom resource since it was recorded.
func (f *facts) changesBelow(ref reference.Ref) string {
	if !ref.Kind.Custom() {
		return ""
	}
	known := f.Old.Known().Record.Items([]reference.Ref{ref})
	return f.live.Current[ref].Because(known[ref].Entry)
}

// trackedOnlyBy returns a Change of a type for each Ref that one Intent tracks and the other does not.
func trackedOnlyBy(one, other annotation.Intent, change string) []record.Change {
	var changes []record.Change
	for _, ref := range one.Refs() {
		if _, both := other.Tracked[ref]; !both {
			changes = append(changes, record.Change{Ref: ref.String(), Type: change})
		}
	}
	return changes
}

// warnMissing warns of missing objects the user who has just listed them, as far as the state is known.
func (d *draft) warnMissing() {
	d.Warnings = append(d.Warnings, missing(d.Write, d.live.Refs, d.live.Current)...)
}

// missing warns of objects that do not exist, and that the write is the first one to list. What else pods require comes after the workload
// in many manifests.
func missing(req Write, refs []reference.Ref, states map[reference.Ref]digest.State) []string {
	listed, before := req.New.Intent.Listed(), req.Old.Intent.Listed()
	absent := slices.DeleteFunc(req.New.Missing(refs, states), func(ref reference.Ref) bool { return !listed[ref] || before[ref] })
	if len(absent) == 0 {
		return nil
	}
	return []string{"pod-reloader: " + NotFound(describe(absent))}
}

// NotFound is the text about objects that are Missing.
func NotFound(objects string) string {
	return "not found in this namespace: " + objects + "; check the name, or create it"
}

// Missing returns those of some tracked Refs whose object does not exist and should: an annotation names it, or the pods cannot start
// without it. An optional reference, and what an expression has matched, may be absent on purpose.
func (v View) Missing(refs []reference.Ref, states map[reference.Ref]digest.State) []reference.Ref {
	var absent []reference.Ref
	for _, ref := range refs {
		// A SecretProviderClass has no content as long as no pod has mounted it.
		if states[ref].Absent && ref.Kind != reference.SecretProviderClass {
			absent = append(absent, ref)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	listed := v.Intent.Listed()
	return slices.DeleteFunc(absent, func(ref reference.Ref) bool { return !listed[ref] && !v.Required[ref] })
}

// describe names Refs, at most eight.
func describe(refs []reference.Ref) string { return reference.List(refs, reference.MaxNamed) }
