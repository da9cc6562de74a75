package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// recreations deletes Jobs whose reload is due, and creates them again.
type recreations struct {
	*base

	jobs  Jobs
	queue *queue.Queue
	log   logr.Logger
}

// recreate deletes a Job whose reload is due, and creates it again. Nothing is deleted before the API server has accepted the new
// Job in a dry run and a Secret has its manifest, from which any leader can create it.
func (c recreations) recreate(ctx context.Context, s gather.Subject) Outcome {
	listed := c.state.Recreations.AreListed()
	if ended := c.complete(ctx, s.Key); ended != nil { // the manifest of an earlier leader was listed after this reconciliation began
		return ended
	}
	if c.decide(s) == jobrun.Adopt && !c.watchFails(s.Key) { // without a live read of the Job, for which there may be no permission
		return c.adoptSuspended(ctx, s)
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
		return c.adoptSuspended(ctx, s)
	case jobrun.Recreate:
	}
	return c.recreateStored(ctx, s, jobrun.Job{Object: o})
}

// recreateStored is recreate for a Job as it is stored.
func (c recreations) recreateStored(ctx context.Context, s gather.Subject, job jobrun.Job) Outcome {
	next, err := c.replacement(ctx, s, job)
	if err != nil {
		return failed{s, unreadable(err)}
	}
	verdict := policy.Assess(next.input).Verdict
	if verdict.Action != policy.Reload {
		return failed{s, transientFailure(reasonRecreationFailed, "the configuration has changed again")}
	}
	next.explain(s, verdict, c.now())
	return c.replaceAndComplete(ctx, s, next.manifest)
}

func (c recreations) decide(s gather.Subject) jobrun.Action {
	return jobrun.Decide(s.Object, c.jobs.RerunFinished || c.state.Changes.HasPending(s.Key))
}

func (c recreations) replaceAndComplete(ctx context.Context, s gather.Subject, m jobrun.Manifest) Outcome {
	if s.Unrecorded {
		return c.record(ctx, s)
	}
	if err := c.manifestLimit(ctx, s.Key.Namespace); err != nil {
		return failed{s, failure{reason: reasonRecreationWaits, err: err}}
	}
	switch err := c.replace(ctx, s, m); {
	case errors.Is(err, errDeleted):
		return InOrder{s}
	case err != nil:
		return failed{s, failedRecreation(err)}
	}
	if ended := c.complete(ctx, s.Key); ended != nil {
		return ended
	}
	return Waiting{}
}

// replacement is a Job that is to be created, and what it starts with.
type replacement struct {
	manifest jobrun.Manifest
	managed  stamp.Managed
	// input compares the Job that it replaces with the live configuration.
	input policy.Input
}

// replacement makes the new Job, with the stamp that the webhook gives it, which may not be called. The new Job has no Record yet: what an
// expression or a mark has selected and is absent now, only the old one tracks.
func (c recreations) replacement(ctx context.Context, s gather.Subject, old jobrun.Job) (*replacement, error) {
	job := old.Replacement(c.annotations)
	req, _ := c.gather.Reader.NewWrite(nil, workload.Object{Kind: s.Object.Kind, Raw: job.Object})
	if req.New.Unresolved != nil {
		return nil, req.New.Unresolved
	}
	plan, in := stamp.Choose(req), c.gather.Input(s)
	refs := slices.Concat(plan.Reads, in.Refs)
	slices.SortFunc(refs, reference.Ref.Compare)
	states, err := c.gather.Store.ReadLive(ctx, s.Key.Namespace, slices.Compact(refs))
	if err != nil {
		return nil, err
	}
	in.Current = states
	read := c.gather.WebhookInput(s, c.gather.Keys.Ring(), digest.Subset(states, plan.Reads))
	managed := plan.Apply(req, read).Managed
	if err := jobrun.Stamp(job, c.annotations, managed); err != nil {
		return nil, err
	}
	return &replacement{jobrun.Manifest{Job: job, UID: old.UID()}, managed, in}, nil
}

// explain adds why the Job is created again.
func (r *replacement) explain(s gather.Subject, verdict policy.Verdict, now time.Time) {
	last := policy.NewLastReload(verdict.Changes, now, s.View.Managed[stamp.LastReload])
	last.Hash, last.Generation = record.HashName(r.managed[stamp.Hash]), s.Object.Generation()
	r.manifest.Reload = last
}

// errDeleted says that another than pod-reloader has deleted a Job: it is not created again.
var errDeleted = errors.New("the job was deleted meanwhile")

// replace stores the manifest and deletes the Job. Where it returns another error than errDeleted, the Job may be deleted or not: what
// is stored by then is completed, or dropped, by the next attempt.
func (c recreations) replace(ctx context.Context, s gather.Subject, m jobrun.Manifest) error {
	secret, err := c.storeManifest(ctx, s, m)
	if err != nil {
		return err
	}
	uid, version := types.UID(s.Object.UID()), s.Object.ResourceVersion()
	err = c.deleteJob(ctx, s, s.Key.Name, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err == nil {
		return nil
	}
	if !apianswer.MayBeStored(err) && c.dropManifest(ctx, s, secret) == nil {
		c.state.Recreations.Done(s.Key, secret.GetName())
	}
	if apianswer.NotFound(err) { // no other leader has: it would have stored the manifest first, and still have it
		return errDeleted
	}
	return fmt.Errorf("delete the job: %w", err)
}

// storeManifest stores the manifest of a Job that the API server accepts, and returns its Secret. Where that may be there, it is
// remembered also where an error is returned.
func (c recreations) storeManifest(ctx context.Context, s gather.Subject, m jobrun.Manifest) (*unstructured.Unstructured, error) {
	err := c.create(ctx, s, m.ToCreate(), client.DryRunAll)
	switch {
	case err == nil: // a user has deleted it
		return nil, errDeleted
	case !apianswer.AlreadyExists(err): // the name is looked for last: there is nothing else against the new Job
		return nil, fmt.Errorf("dry run of the new job: %w", err)
	}
	if m.RootCA, err = c.rootCAToStore(ctx, s.Key.Namespace); err != nil {
		return nil, err
	}
	secret, err := c.jobs.Store.Encode(m)
	if err != nil {
		return nil, err
	}
	err = c.create(ctx, s, secret)
	if err == nil || apianswer.AlreadyExists(err) || apianswer.MayBeStored(err) {
		c.state.Recreations.Add(s.Key, secret.GetName())
	}
	if err != nil {
		return nil, fmt.Errorf("store the manifest of the job in secret %s/%s: %w", secret.GetNamespace(), secret.GetName(), err)
	}
	return secret, nil
}

// adoptSuspended records the configuration that the pods of a suspended Job start with.
func (c recreations) adoptSuspended(ctx context.Context, s gather.Subject) Outcome {
	in := c.gather.Input(s)
	if _, ended := c.assessLive(ctx, s, in); ended != nil {
		return ended
	}
	rec, err := policy.NewRecord(in, s.View.Managed[stamp.Hash], true)
	if err != nil {
		return failed{s, failure{reason: reasonAdoptionFailed, err: err}}
	}
	text, fits := rec.Text(s.View.RecordBudget())
	c.events.Warn(s.Reported(), reasonTooLarge, c.tooLargeToRecord(fits, in, s.View.Managed[stamp.Hash]))
	if !fits {
		return InOrder{s}
	}
	key := c.annotations.ConfigRecord
	answer, err := c.patchAnnotations(ctx, s, map[string]any{key: text})
	switch {
	case err != nil && c.keepRecord(ctx, s, text, err):
		return InOrder{s}
	case err != nil:
		return failed{s, failedWrite(s.Object.Kind, reasonAdoptionFailed, err)}
	case answer.Annotations[key] != text:
		return failed{s, c.explainNoRecord(s, reasonAdoptionFailed, "")}
	}
	c.wroteRecord(s)
	c.metrics.adopted(s.Object.Kind)
	return InOrder{s}
}

// record writes the Record that is kept in memory only. The guard lets only Jobs be deleted whose configuration is recorded.
func (c recreations) record(ctx context.Context, s gather.Subject) Outcome {
	key, text := c.annotations.ConfigRecord, s.View.Managed[stamp.Record]
	answer, err := c.patchAnnotations(ctx, s, map[string]any{key: text})
	switch {
	case err != nil:
		return failed{s, failedRecreation(err)}
	case answer.Annotations[key] != text:
		return failed{s, c.explainNoRecord(s, reasonRecreationFailed, "")}
	}
	c.wroteRecord(s)
	return Waiting(queue.After(time.Second, queue.Retry)) // or earlier, by the event of this write
}

// failedRecreation is failedWrite for a Job.
func failedRecreation(err error) failure {
	f := failedWrite(workload.Job(), reasonRecreationFailed, err)
	if f.refused && !apierrors.IsUnauthorized(err) {
		return refusedRecreation(f)
	}
	return f
}

// grantRecreation is how a user gives the permissions.
const grantRecreation = "add the component recreate-jobs, or set reloader.recreateJobs=true in the chart"

func refusedRecreation(f failure) failure {
	f.reason = reasonRecreationRefused
	f.err = fmt.Errorf("the Job keeps the configuration that it was started with, because pod-reloader may not create it again; "+
		grantRecreation+": %w", f.err)
	return f
}
