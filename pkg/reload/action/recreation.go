package action

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// complete is Actions.CompleteRecreation.
func (c recreations) complete(ctx context.Context, key workload.Key) Outcome {
	for {
		name := c.state.Recreations.First(key)
		if name == "" {
			return nil
		}
		s := gather.Subject{Key: key, Object: workload.Summary{Kind: workload.Job()}, Events: c.state.Changes.BeginAttempt(key)}
		if wait := c.WaitToWrite(s); wait > 0 {
			return Waiting(queue.After(wait, queue.Retry))
		}
		if !c.MayWrite(s, inflight.Urgent) {
			return Waiting{} // queued again when it has a slot
		}
		if ended := c.completeOne(ctx, s, name); ended != nil {
			return ended
		}
	}
}

// completeOne is complete for one Secret.
func (c recreations) completeOne(ctx context.Context, s gather.Subject, name string) Outcome {
	secret := &unstructured.Unstructured{}
	secret.SetAPIVersion("v1")
	secret.SetKind("Secret")
	err := c.gather.APIReader.Get(ctx, types.NamespacedName{Namespace: c.jobs.Store.Namespace, Name: name}, secret)
	switch {
	case apianswer.NotFound(err):
		c.state.Recreations.Done(s.Key, name)
		return nil
	case err != nil:
		return failed{s, c.failedCompletion(name, err)}
	}
	m, err := c.jobs.Store.Decode(secret)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot read the manifest of a Job; the Secret is left", "workload", s.Key, "secret", name)
		c.state.Recreations.Done(s.Key, name)
		return nil
	}
	return c.completeManifest(ctx, s, recreation{secret, m})
}

// recreation is a manifest with its Secret.
type recreation struct {
	secret   *unstructured.Unstructured
	manifest jobrun.Manifest
}

// completeManifest creates the Job, unless there is one of its name.
func (c recreations) completeManifest(ctx context.Context, s gather.Subject, r recreation) Outcome {
	old := r.manifest.Job.DeepCopy()
	old.SetUID(types.UID(r.manifest.UID)) // Events about what fails are on the Job that was deleted
	s = c.withObject(s, workload.Object{Kind: s.Object.Kind, Raw: old.Object})
	o, err := c.gather.Stored(ctx, s)
	job := jobrun.Job{Object: o}
	switch {
	case apianswer.NotFound(err) && c.state.Recreations.IsCreated(s.Key, r.secret.GetName()): // a user has deleted the new Job
		return c.endRecreation(ctx, s, r)
	case apianswer.NotFound(err):
		return c.inNamespace(ctx, s, r, c.createJob)
	case err != nil:
		return c.inNamespace(ctx, s, r, func(_ context.Context, s gather.Subject, r recreation) Outcome {
			return failed{s, c.failedCompletion(r.secret.GetName(), err)}
		})
	case o.UID() == r.manifest.UID && job.Deleting():
		return failed{c.withObject(s, o), failure{reason: reasonRecreationWaits, err: fmt.Errorf(
			"the new Job is created when the old one is gone, which waits for the finalizers %s", strings.Join(job.Finalizers(), ", "))}}
	case o.UID() == r.manifest.UID: // it was not deleted
		return c.cancelRecreation(ctx, c.withObject(s, o), r)
	case job.ReplacementOf(c.annotations) == r.manifest.UID:
		return c.recreated(ctx, s, o, r)
	}
	return c.inNamespace(ctx, c.withObject(s, o), r, c.dropRecreation)
}

// dropRecreation drops a manifest beside another Job of the same name.
func (c recreations) dropRecreation(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if ended := c.endRecreation(ctx, s, r); ended != nil {
		return ended
	}
	c.events.Warn(s.Reported(), reasonRecreationDropped, "another Job of this name was created while the old one was deleted for its changed "+
		"configuration: the old one is not created again")
	return nil
}

// cancelRecreation drops a manifest whose Job was not deleted. The leader that has stored it may be frozen right before the deletion,
// which requires the version of the Job that it has read: it gets another one first, so that the deletion is refused if it comes late.
// Else nothing would be left to create the Job from.
func (c recreations) cancelRecreation(ctx context.Context, s gather.Subject, r recreation) Outcome {
	_, err := c.patchAnnotations(ctx, s, map[string]any{c.annotations.RecreationCanceled: string(r.secret.GetUID())})
	if err != nil {
		return failed{s, c.failedCompletion(r.secret.GetName(), err)}
	}
	return c.endRecreation(ctx, s, r)
}

// createJob creates the Job of a manifest. It is gone for good with its namespace only.
func (c recreations) createJob(ctx context.Context, s gather.Subject, r recreation) Outcome {
	job := r.manifest.ToCreate()
	err := c.create(ctx, s, job)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("recreated the Job", "workload", s.Key, "replaces", r.manifest.UID)
		return c.recreated(ctx, s, workload.Object{Kind: s.Object.Kind, Raw: job.Object}, r)
	case apianswer.NamespaceGone(err):
		return c.endRecreation(ctx, s, r)
	case apianswer.AlreadyExists(err):
		return failed{s, failure{reason: reasonRecreationFailed, soon: true, quiet: true, err: err}}
	default:
		return failed{s, c.failedCompletion(r.secret.GetName(), fmt.Errorf(
			"create the deleted job again from secret %s/%s: %w", r.secret.GetNamespace(), r.secret.GetName(), err))}
	}
}

// recreated completes the reload of a Job that exists again: its Event, its last-reload, which the webhook drops from what is created, and
// the end of the Secret. The Job may finish and be removed before the last-reload is written: the Event comes first, and where the
// last-reload is refused for good, or for long, the Secret ends all the same. Another leader would create the Job a second time.
func (c recreations) recreated(ctx context.Context, s gather.Subject, o workload.Object, r recreation) Outcome {
	s = c.withObject(s, o)
	if !c.state.Recreations.IsCreated(s.Key, r.secret.GetName()) {
		c.state.Recreations.Created(s.Key, r.secret.GetName())
		c.backoff.Forget(s.Key) // what failed until now says nothing about the last-reload
	}
	last, err := record.ParseLastReload(s.View.Managed[stamp.LastReload])
	if err != nil {
		last = r.manifest.Reload
		last.Hash = record.HashName(s.View.Managed[stamp.Hash])
		last.Time = s.View.ReloadTime(last.Time).UTC() // the same for each attempt and each leader, so that there is one Event
		last.Generation = s.Object.Generation()        // by which the webhook knows it where clocks differ
		c.events.EmitOwn(s.Reported(), last)
		err = c.explainRecreation(ctx, s, last, jobrun.FieldsOf(&unstructured.Unstructured{Object: o.Raw}, r.manifest.Job, string(fieldOwner)))
		if err != nil && c.mayExplainLater(s, err) {
			return failed{s, c.failedCompletion(r.secret.GetName(), err)}
		}
	}
	ended := c.endRecreation(ctx, s, r)
	if err != nil && mayHaveEnded(ended) {
		c.events.Warn(s.Reported(), reasonRecreationFailed,
			"the Job was created again, but its last-reload annotation cannot be written: "+textOf(err))
	}
	if ended != nil {
		return ended
	}
	c.queue.Add(queue.Workload, s.Key) // it is compared again: where an earlier leader has created it, no event follows
	return reloaded{s, policy.ChangesOf(last), last, s.Object.Generation()}
}

// mayExplainLater reports whether a last-reload that could not be written may soon be.
func (c recreations) mayExplainLater(s gather.Subject, err error) bool {
	soon := failedWrite(s.Object.Kind, reasonRecreationFailed, err).soon && !c.backoff.HasFailedLong(s.Key)
	return soon || apierrors.IsUnauthorized(err)
}

// explainRecreation writes last-reload on the new Job, and its managedFields where there are some to write.
func (c recreations) explainRecreation(ctx context.Context, s gather.Subject, last record.LastReload, fields []metav1.ManagedFieldsEntry) error {
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

// endRecreation deletes a Secret with its manifest.
func (c recreations) endRecreation(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if err := c.dropManifest(ctx, s, r.secret); err != nil {
		return failed{s, c.failedCompletion(r.secret.GetName(), fmt.Errorf("delete secret %s/%s: %w", r.secret.GetNamespace(), r.secret.GetName(), err))}
	}
	c.state.Recreations.Done(s.Key, r.secret.GetName())
	return nil
}

// failedCompletion is failedWrite for a Job whose manifest is in a Secret.
func (c recreations) failedCompletion(secret string, err error) failure {
	f := failedWrite(workload.Job(), reasonRecreationFailed, err)
	if f.refused && !apierrors.IsUnauthorized(err) {
		f.reason = reasonRecreationRefused
		f.err = fmt.Errorf("the re-creation of the Job, which may be deleted, cannot be completed: unless it exists, create it from job.json "+
			"in the Secret %s/%s, and delete the Secret; or %s: %w", c.jobs.Store.Namespace, secret, grantRecreation, f.err)
	}
	return f
}

// mayHaveEnded reports whether the Secret of an endRecreation may be deleted: where the API server has not answered, too.
func mayHaveEnded(ended Outcome) bool {
	f, fails := ended.(failed)
	return !fails || apianswer.MayBeStored(f.failure.err)
}

// dropManifest deletes a Secret, and no other one that another leader has stored under its name.
func (c recreations) dropManifest(ctx context.Context, s gather.Subject, secret *unstructured.Unstructured) error {
	uid := secret.GetUID()
	err := c.delete(ctx, s, secret, client.Preconditions{UID: &uid})
	if apianswer.NotFound(err) || apierrors.IsConflict(err) && !apianswer.Denied(err) {
		return nil
	}
	return err
}
