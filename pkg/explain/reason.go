package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// judge gives the first reason that applies. under is what foreign returns.
func judge(in Input, verdict policy.Verdict, rows []Row, under string) (string, string) {
	if reason := cmp.Or(notHandledReason(in), unchangedJob(in)); reason != "" {
		return string(policy.Nothing), reason
	}
	switch {
	case in.View.Unresolved != nil:
		return unknown, in.View.Unresolved.Error()
	case in.Ring.Empty():
		return uncompared(in, rows)
	case len(in.ReadErrors) > 0:
		return unknown, fmt.Sprintf("%d of %d tracked objects cannot be read here; nothing restarts if the installation cannot read them either: run this in its pod",
			len(in.ReadErrors), len(in.View.Intent.Tracked))
	case verdict.Action == policy.Nothing && under != "":
		return unknown, under
	default:
		return string(verdict.Action), reasonOf(in, verdict, rows) + notBefore(in, verdict)
	}
}

// reasonOf gives the reason of a Verdict that is based on all there is to compare.
func reasonOf(in Input, verdict policy.Verdict, rows []Row) string {
	switch {
	case verdict.Reason == policy.UpToDate && slices.ContainsFunc(rows, changed):
		return "what differs does not trigger a reload"
	case verdict.Reason == policy.UpToDate && pending(in) != "":
		return "the pod template has the current configuration"
	case verdict.Action == policy.Reload && in.NotifyOnly:
		return verdict.Reason + "; the installation posts that to --webhook-url, and restarts nothing"
	default:
		return verdict.Reason
	}
}

// uncompared gives the reason where there is no digest key here to compare contents with.
func uncompared(in Input, rows []Row) (string, string) {
	switch {
	case in.NoKey != "":
		return unknown, "there is no digest key to compare with: " + in.NoKey
	case len(differing(rows)) == 0:
		return string(policy.Nothing), "every tracked object has the recorded resourceVersion"
	default:
		return unknown, "contents cannot be compared without the digest key; run this in the installation's pod, or as a user who may read its Secret"
	}
}

// notHandledReason says why the loop leaves the workload alone, whatever its configuration is; empty if it does not.
func notHandledReason(in Input) string {
	switch {
	case in.Outside != "":
		return "not handled: " + in.Outside
	case in.Object.Deleting():
		return "the workload is being deleted"
	case !in.View.Intent.Asked:
		return notAsked(in)
	case in.View.Ignored:
		return fmt.Sprintf("a label excludes the workload: %s or %s is \"true\"", in.Keys.IgnoredLabel, in.Keys.DisabledLabel)
	case in.View.Excluded:
		return fmt.Sprintf("the workload cannot be stamped: %v", in.Object.Check())
	case len(in.View.Intent.Tracked) == 0 && in.View.Unresolved == nil:
		return unselected(in)
	default:
		return skippedJob(in)
	}
}

// notAsked says what to write for a workload whose annotations ask for nothing.
func notAsked(in Input) string {
	own := fmt.Sprintf("%s or %s", in.Keys.ConfigMaps, in.Keys.Secrets)
	if in.Stakater == nil {
		return fmt.Sprintf("no annotation asks for reloads; set %s on the workload itself, not on its pod template", own)
	}
	auto := in.Stakater.Auto
	value, ok := in.Object.Annotations()[auto]
	if !ok {
		value = in.Object.TemplateAnnotations()[auto]
	}
	if on, err := strconv.ParseBool(value); err == nil && !on {
		return fmt.Sprintf("annotation %s is %q, which switches off all annotations of Reloader, also lists of names: remove it to use those", auto, value)
	}
	return fmt.Sprintf("no annotation asks for reloads; set %s on the workload itself, not on its pod template, or an annotation of Reloader such as %s", own, auto)
}

// unselected says why the annotations select no object.
func unselected(in Input) string {
	reasons := notTracked(in)
	if len(reasons) == 0 {
		reasons = []string{"what they name is invalid or excluded, or the pods reference none"}
	}
	return "the annotations select no object: " + strings.Join(reasons, "; ")
}

// notTrackedBeside says why further objects are not tracked than those of the rows, as far as that is known. A Problem reports what is too
// much to be tracked.
func notTrackedBeside(in Input) []string {
	if len(in.View.Intent.Tracked) == 0 || in.View.Unresolved != nil || in.View.Intent.Dropped > 0 {
		return nil
	}
	return notTracked(in)
}

// notTracked says why Selections do not track what they could.
func notTracked(in Input) []string {
	var reasons []string
	for _, s := range in.View.Intent.Selections {
		reasons = append(reasons, without(in, s)...)
	}
	return reasons
}

// without says what a Selection does not track. The names of lists and references are tracked, unless the object is ignored.
func without(in Input, s annotation.Selection) []string {
	var reasons []string
	if len(s.Patterns) > 0 && !matches(in.View.Intent, s) {
		reasons = append(reasons, fmt.Sprintf("no %s that is not ignored or excluded has a name that an expression matches", s.Kind))
	}
	if s.Kind.Custom() {
		return reasons
	}
	if unmarked := untracked(in.View.Intent, s.Kind, s.Marked); unmarked != "" {
		reasons = append(reasons, fmt.Sprintf(
			"not marked by the annotation %s: \"true\", ignored, or not there: %s", in.Stakater.Match, unmarked))
	}
	if ignored := untracked(in.View.Intent, s.Kind, slices.Concat(s.Listed, s.Referenced)); ignored != "" {
		reasons = append(reasons, fmt.Sprintf("ignored by the annotation %s or by --resource-label-selector: %s", in.Stakater.Ignore, ignored))
	}
	return reasons
}

// matches reports whether an expression of a Selection matches a tracked object.
func matches(intent annotation.Intent, s annotation.Selection) bool {
	return slices.ContainsFunc(s.Patterns, func(p *pattern.Pattern) bool {
		return slices.ContainsFunc(intent.Refs(), func(ref reference.Ref) bool { return ref.Kind == s.Kind && p.Match(ref.Name) })
	})
}

// untracked lists those of some names that are not tracked; empty if all are.
func untracked(intent annotation.Intent, kind reference.Kind, names []string) string {
	var refs []reference.Ref
	for _, name := range names {
		ref := reference.Ref{Kind: kind, Name: name}
		if _, tracked := intent.Tracked[ref]; !tracked && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return reference.List(refs, reference.MaxNamed)
}
