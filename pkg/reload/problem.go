package reload

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// The reasons of the Events about what needs a user; those of failures are defined where they arise, those of wrong annotations in
// package annotation.
const (
	reasonHeld         = "ReloadHeld"
	reasonMissing      = "ConfigMissing"
	reasonReferentHeld = "ReferentHeld"
	reasonNewer        = "RecordOfNewerVersion"
	reasonProblems     = "InvalidAnnotation"
)

// problems reports what is wrong with workloads and their configuration, and needs a user.
type problems struct {
	events  *report.Reporter
	store   Store
	state   *state.State
	metrics *metrics
	now     func() time.Time
}

// report reports what the user got wrong, and which objects are missing. Where nothing is known of one of these, and some
// objects are to be read, that is reported afterwards: reportMissing.
func (p problems) report(ctx context.Context, s gather.Subject, in policy.Input, reads []reference.Ref) {
	var wrong []string
	for _, problem := range s.Problems {
		wrong = append(wrong, problem.Message)
	}
	p.events.Warn(s.Reported(), reasonProblems, strings.Join(wrong, "; "))
	p.events.Warn(s.Reported(), reasonReferentHeld, p.held(in))
	unknown := func(ref reference.Ref) bool {
		_, known := in.Current[ref]
		return !known
	}
	if len(reads) == 0 || !slices.ContainsFunc(in.Refs, unknown) {
		p.reportMissing(ctx, s, in)
	}
}

// reportMissing reports which objects do not exist and should.
func (p problems) reportMissing(ctx context.Context, s gather.Subject, in policy.Input) {
	named, others := divide(s.View.Missing(in.Refs, in.Current))
	if !p.state.Warnings.Check(s.Key, reasonMissing, missing(named, len(others)), p.now()) {
		return
	}
	named = p.absent(ctx, s, named)
	p.events.Warn(s.Reported(), reasonMissing, missing(named, len(others)), slices.Concat(named, others)...)
}

// held is the text about custom resources whose state cannot be trusted; empty if there are none.
func (p problems) held(in policy.Input) string {
	var held []reference.Ref
	for _, ref := range in.Refs {
		hold := in.Current[ref].Hold
		if ref.Kind.Custom() && hold != nil && p.now().Sub(hold.Since) >= digest.ReportHoldAfter {
			held = append(held, ref)
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "the pods keep the last valid state of custom resources: " + reference.Clauses(held, reference.MaxNamed, func(ref reference.Ref) string {
		return ref.String() + ": " + in.Current[ref].Hold.Reason
	})
}

// divide separates the missing objects that an Event names, and that are read live before it, from the others: a list may have thousands.
// Of the others it only says how many there can be.
func divide[T any](all []T) (named, others []T) {
	n := min(len(all), reference.MaxNamed)
	return all[:n], all[n:]
}

// missing is the text about objects that do not exist; empty if none is known.
func missing(named []reference.Ref, others int) string {
	if len(named) == 0 {
		return ""
	}
	return stamp.NotFound(list(named, others))
}

// list joins what an Event names, with the number of the others: some of them may exist.
func list[T fmt.Stringer](named []T, others int) string {
	text := reference.List(named, reference.MaxNamed)
	if others > 0 {
		text += " and up to " + strconv.Itoa(others) + " more"
	}
	return text
}

// reportHold reports why a reload that is due is not made.
func (p problems) reportHold(ctx context.Context, s gather.Subject, verdict policy.Verdict) {
	if verdict.Action != policy.Hold {
		p.events.Clear(s.Reported(), reasonHeld)
		return
	}
	changes, others := divide(verdict.Changes)
	text := "reload held: " + policy.HeldBy(list(changes, len(others)))
	if !p.state.Warnings.Check(s.Key, reasonHeld, text, p.now()) {
		return
	}
	var gone []reference.Ref
	for _, c := range verdict.Changes {
		gone = append(gone, c.Ref)
	}
	if named, _ := divide(gone); len(p.absent(ctx, s, slices.Clone(named))) < len(named) {
		text = ""
	}
	p.events.Warn(s.Reported(), reasonHeld, text, gone...)
}

// absent returns those of some Refs that do not exist according to the API server itself. A workload may come to the caches
// earlier than an object that was created before it: that one is not missing. When it comes, the workload is looked at again.
func (p problems) absent(ctx context.Context, s gather.Subject, refs []reference.Ref) []reference.Ref {
	states, err := p.store.ReadLive(ctx, s.Key.Namespace, refs)
	if err != nil {
		log.FromContext(ctx).V(1).Info("cannot check the missing objects again", "workload", s.Key, "error", err.Error())
	}
	return slices.DeleteFunc(refs, func(ref reference.Ref) bool {
		state, known := states[ref]
		return known && !state.Absent
	})
}

// newerRecord is the text of the Event about a Record that cannot be read; empty if it can.
func newerRecord(known policy.Known) string {
	if !known.Newer {
		return ""
	}
	return policy.NewerRecord
}
