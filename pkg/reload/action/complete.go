package action

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// completions end what was begun for Jobs whose manifests are in Secrets, whichever leader has begun it.
type completions struct {
	*base

	manifests manifests
	queue     *queue.Queue
}

// complete is Actions.CompleteRecreation.
func (c completions) complete(ctx context.Context, key workload.Key) Outcome {
	for name := c.manifests.known.First(key); name != ""; name = c.manifests.known.First(key) {
		s := gather.Subject{Key: key, Object: workload.Summary{Kind: workload.Job()}, Events: c.state.Changes.BeginAttempt(key)}
		if wait := c.WaitToWrite(s); wait > 0 {
			return Waiting(queue.After(wait, queue.Retry))
		}
		if !c.MayWrite(s, inflight.Urgent) {
			return Waiting{} // queued again when it has a slot
		}
		r, found, err := c.manifests.read(ctx, key, name)
		if err != nil {
			return c.failed(s, name, err)
		}
		if !found {
			continue
		}
		if ended := c.completeManifest(ctx, s, r); ended != nil {
			return ended
		}
	}
	return nil
}

// completeManifest creates the Job, unless there is one of its name.
func (c completions) completeManifest(ctx context.Context, s gather.Subject, r recreation) Outcome {
	old := r.manifest.Job.DeepCopy()
	old.SetUID(types.UID(r.manifest.UID)) // Events about what fails are on the Job that was deleted
	s = c.withObject(s, workload.Object{Kind: s.Object.Kind, Raw: old.Object})
	o, err := c.gather.Stored(ctx, s)
	job := jobrun.Job{Object: o}
	switch {
	case apianswer.NotFound(err) && c.manifests.known.IsCreated(s.Key, r.secret.GetName()): // a user has deleted the new Job
		return c.end(ctx, s, r)
	case apianswer.NotFound(err):
		return c.inNamespace(ctx, s, r, c.createJob)
	case err != nil:
		return c.inNamespace(ctx, s, r, func(_ context.Context, s gather.Subject, r recreation) Outcome {
			return c.failed(s, r.secret.GetName(), err)
		})
	case o.UID() == r.manifest.UID && job.Deleting():
		return failed{c.withObject(s, o), failure{reason: reasonRecreationWaits, err: fmt.Errorf(
			"the new Job is created when the old one is gone, which waits for the finalizers %s", strings.Join(job.Finalizers(), ", "))}}
	case o.UID() == r.manifest.UID: // it was not deleted
		return c.cancel(ctx, c.withObject(s, o), r)
	case r.manifest.IsReplacement(job):
		return c.recreated(ctx, s, o, r)
	}
	return c.inNamespace(ctx, c.withObject(s, o), r, c.drop)
}

// drop drops a manifest beside another Job of the same name.
func (c completions) drop(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if ended := c.end(ctx, s, r); ended != nil {
		return ended
	}
	c.events.Warn(s.Reported(), reasonRecreationDropped, "another Job of this name was created while the old one was deleted for its changed "+
		"configuration: the old one is not created again")
	return nil
}

// cancel drops a manifest whose Job was not deleted. The leader that has stored it may be frozen right before the deletion,
// which requires the version of the Job that it has read: it gets another one first, so that the deletion is refused if it comes late.
// Else nothing would be left to create the Job from.
func (c completions) cancel(ctx context.Context, s gather.Subject, r recreation) Outcome {
	_, err := c.patchAnnotations(ctx, s, map[string]any{c.annotations.RecreationCanceled: string(r.secret.GetUID())})
	if err != nil {
		return c.failed(s, r.secret.GetName(), err)
	}
	return c.end(ctx, s, r)
}

// createJob creates the Job of a manifest. It is gone for good with its namespace only.
func (c completions) createJob(ctx context.Context, s gather.Subject, r recreation) Outcome {
	job := r.manifest.ToCreate()
	err := c.create(ctx, s, job)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("recreated the Job", "workload", s.Key, "replaces", r.manifest.UID)
		return c.recreated(ctx, s, workload.Object{Kind: s.Object.Kind, Raw: job.Object}, r)
	case apianswer.NamespaceGone(err):
		return c.end(ctx, s, r)
	case apianswer.AlreadyExists(err):
		return failed{s, failure{reason: reasonRecreationFailed, soon: true, quiet: true, err: err}}
	default:
		return c.failed(s, r.secret.GetName(), fmt.Errorf("create the deleted job again from secret %s: %w", r.name(), err))
	}
}

// recreated completes the reload of a Job that exists again: its Event, its last-reload, which the webhook drops from what is created, and
// the end of the Secret. The Job may finish and be removed before the last-reload is written: the Event comes first, and where the
// last-reload is refused for good, or for long, the Secret ends all the same. Another leader would create the Job a second time.
func (c completions) recreated(ctx context.Context, s gather.Subject, o workload.Object, r recreation) Outcome {
	s = c.withObject(s, o)
	if !c.manifests.known.IsCreated(s.Key, r.secret.GetName()) {
		c.manifests.known.Created(s.Key, r.secret.GetName())
		c.backoff.Forget(s.Key) // what failed until now says nothing about the last-reload
	}
	last, err := record.ParseLastReload(s.View.Managed[stamp.LastReload])
	if err != nil {
		last = r.manifest.Reload
		last.Hash = record.HashName(s.View.Managed[stamp.Hash])
		last.Time = s.View.ReloadTime(last.Time).UTC() // the same for each attempt and each leader, so that there is one Event
		last.Generation = s.Object.Generation()        // by which the webhook knows it where clocks differ
		c.events.EmitOwn(s.Reported(), last)
		err = c.explain(ctx, s, last, jobrun.FieldsOf(&unstructured.Unstructured{Object: o.Raw}, r.manifest.Job, string(fieldOwner)))
		if err != nil && c.mayExplainLater(s, err) {
			return c.failed(s, r.secret.GetName(), err)
		}
	}
	left := c.manifests.end(ctx, s, r.secret)
	if err != nil && (left == nil || apianswer.MayBeStored(left)) {
		c.events.Warn(s.Reported(), reasonRecreationFailed,
			"the Job was created again, but its last-reload annotation cannot be written: "+textOf(err))
	}
	if left != nil {
		return c.failed(s, r.secret.GetName(), left)
	}
	c.queue.Add(queue.Workload, s.Key) // it is compared again: where an earlier leader has created it, no event follows
	return reloaded{s, policy.ChangesOf(last), last, s.Object.Generation()}
}

// mayExplainLater reports whether a last-reload that could not be written may soon be.
func (c completions) mayExplainLater(s gather.Subject, err error) bool {
	soon := failedWrite(s.Object.Kind, reasonRecreationFailed, err).soon && !c.backoff.HasFailedLong(s.Key)
	return soon || apierrors.IsUnauthorized(err)
}

// explain writes last-reload on the new Job, and its managedFields where there are some to write.
func (c completions) explain(ctx context.Context, s gather.Subject, last record.LastReload, fields []metav1.ManagedFieldsEntry) error {
	metadata := map[string]any{"uid": s.Object.UID(), "annotations": map[string]any{c.annotations.LastReload: last.String()}}
	if len(fields) > 0 {
		metadata["managedFields"] = fields
	}
	_, err := c.merge(ctx, s, map[string]any{"metadata": metadata})
	if apianswer.NotFound(err) {
		return nil // it was deleted at once
	}
	return err
}

// end deletes a Secret with its manifest.
func (c completions) end(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if err := c.manifests.end(ctx, s, r.secret); err != nil {
		return c.failed(s, r.secret.GetName(), err)
	}
	return nil
}

// failed is the outcome where a request for a Job failed whose manifest is in a Secret.
func (c completions) failed(s gather.Subject, secret string, err error) Outcome {
	f := failedWrite(workload.Job(), reasonRecreationFailed, err)
	return failed{s, explainRefusal(f, "the re-creation of the Job, which may be deleted, cannot be completed: unless it exists, create it "+
		"from job.json in the Secret "+c.manifests.store.Namespace+"/"+secret+", and delete the Secret; or ")}
}
