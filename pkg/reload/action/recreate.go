package action

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The reasons of the Events about Jobs that are created again.
const (
	reasonRecreationRefused = "RecreationForbidden"
	reasonRecreationFailed  = "RecreationFailed"
	reasonRecreationWaits   = "RecreationPostponed"
	reasonRecreationDropped = "RecreationDropped"
)

// recreations begins to create Jobs again whose reload is due.
type recreations struct {
	*base

	rerunFinished bool
	manifests     manifests
	adoptions     adoptions
	completions   completions
}

// recreate deletes a Job whose reload is due, and creates it again. Nothing is deleted before the API server has accepted the new
// Job in a dry run and a Secret has its manifest, from which any leader can create it.
func (c recreations) recreate(ctx context.Context, s gather.Subject) Outcome {
	listed := c.manifests.known.AreListed()
	if ended := c.completions.complete(ctx, s.Key); ended != nil { // the manifest of an earlier leader was listed after this reconciliation began
		return ended
	}
	if c.decide(s) == jobrun.Adopt && !c.watchFails(s.Key) { // without a live read of the Job, for which there may be no permission
		return c.adoptions.adoptSuspended(ctx, s)
	}
	o, err := c.gather.Stored(ctx, s)
	switch {
	case apianswer.NotFound(err):
		return InOrder{s}
	case err != nil: // where the permissions to create Jobs again are missing, so is that to list the manifests
		return failed{s, failedRecreation(err)}
	case !listed: // the Job may have a manifest already, of which it would be created, too
		return failed{s, transientFailure(reasonRecreationWaits, "the manifests of Jobs that an earlier leader has begun to create again are not listed yet")}
	}
	cached := s
	s = c.withObject(s, o)
	if c.isReleasedLive(ctx, s.Key, o, s.View) {
		return InOrder{s}
	}
	if wait := c.postponeLive(cached, s.View); wait > 0 {
		return Waiting(queue.After(wait, queue.Config))
	}
	switch c.decide(s) {
	case jobrun.Skip:
		return InOrder{s}
	case jobrun.Adopt:
		return c.adoptions.adoptSuspended(ctx, s)
	case jobrun.Recreate:
	}
	return c.replace(ctx, s, jobrun.Job{Object: o})
}

func (c recreations) decide(s gather.Subject) jobrun.Action {
	return jobrun.Decide(s.Object, c.rerunFinished || c.state.Changes.HasPending(s.Key))
}

// newManifest makes the new Job, with the stamp that the webhook gives it, which may not be called, if the reload is due by the live
// configuration. The new Job has no Record yet: what an expression or a mark has selected and is absent now, only the old one tracks.
func newManifest(ctx context.Context, g gather.Gatherer, s gather.Subject, old jobrun.Job) (jobrun.Manifest, Outcome) {
	keys := g.Reader.Keys
	job := old.Replacement(keys)
	req, _ := g.Reader.NewWrite(nil, workload.Object{Kind: s.Object.Kind, Raw: job.Object})
	if req.New.Unresolved != nil {
		return jobrun.Manifest{}, Unreadable(s, req.New.Unresolved)
	}
	plan, in := stamp.Choose(req), g.Input(s)
	refs := slices.Concat(plan.Reads, in.Refs)
	slices.SortFunc(refs, reference.Ref.Compare)
	states, err := g.Store.ReadLive(ctx, s.Key.Namespace, slices.Compact(refs))
	if err != nil {
		return jobrun.Manifest{}, Unreadable(s, err)
	}
	managed := plan.Apply(req, g.WebhookInput(s, g.Keys.Ring(), digest.Subset(states, plan.Reads))).Managed
	if err := jobrun.Stamp(job, keys, managed); err != nil {
		return jobrun.Manifest{}, Unreadable(s, err)
	}
	in.Current = states
	verdict := policy.Assess(in).Verdict
	if verdict.Action != policy.Reload {
		return jobrun.Manifest{}, failed{s, transientFailure(reasonRecreationFailed, "the configuration has changed again")}
	}
	last := policy.NewLastReload(verdict.Changes, g.Now(), s.View.Managed[stamp.LastReload])
	last.Hash, last.Generation = record.HashName(managed[stamp.Hash]), s.Object.Generation()
	return jobrun.Manifest{Job: job, UID: old.UID(), Reload: last}, nil
}

// replace stores the manifest, deletes the Job and creates it again. Where a write gets no answer, the Job may be deleted or not: what is
// stored by then is completed, or dropped, by the next attempt.
func (c recreations) replace(ctx context.Context, s gather.Subject, old jobrun.Job) Outcome {
	m, ended := newManifest(ctx, c.gather, s, old)
	if ended != nil {
		return ended
	}
	if s.Unrecorded {
		return c.adoptions.storeKept(ctx, s)
	}
	if err := c.manifests.limit(ctx, s.Key.Namespace); err != nil {
		return failed{s, failure{reason: reasonRecreationWaits, err: err}}
	}
	switch err := c.create(ctx, s, m.ToCreate(), client.DryRunAll); {
	case err == nil: // a user has deleted it
		return InOrder{s}
	case !apianswer.AlreadyExists(err): // the name is looked for last: there is nothing else against the new Job
		return failed{s, failedRecreation(fmt.Errorf("dry run of the new job: %w", err))}
	}
	secret, err := c.manifests.add(ctx, s, m)
	if err != nil {
		return failed{s, failedRecreation(err)}
	}
	uid, version := types.UID(s.Object.UID()), s.Object.ResourceVersion()
	err = c.deleteJob(ctx, s, s.Key.Name, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apianswer.MayBeStored(err) {
		_ = c.manifests.end(ctx, s, secret)
	}
	switch {
	case apianswer.NotFound(err): // a user has deleted it; another leader would have stored the manifest first, and still have it
		return InOrder{s}
	case err != nil:
		return failed{s, failedRecreation(fmt.Errorf("delete the job: %w", err))}
	}
	if ended := c.completions.complete(ctx, s.Key); ended != nil {
		return ended
	}
	return Waiting{}
}

// failedRecreation is failedWrite for a Job that is not deleted.
func failedRecreation(err error) failure {
	return explainRefusal(failedWrite(workload.Job(), reasonRecreationFailed, err), jobUnchanged)
}

// jobUnchanged is what follows for a Job that is not deleted.
const jobUnchanged = "the Job keeps the configuration that it was started with, because pod-reloader may not create it again; "

// grantRecreation is how a user gives the permissions.
const grantRecreation = "add the component recreate-jobs, or set reloader.recreateJobs=true in the chart"

// explainRefusal explains a failure to write a Job where a permission is missing. consequence is what follows from that.
func explainRefusal(f failure, consequence string) failure {
	if f.refused && !apierrors.IsUnauthorized(f.err) {
		f.reason = reasonRecreationRefused
		f.err = fmt.Errorf("%s"+grantRecreation+": %w", consequence, f.err)
	}
	return f
}
