package action

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
)

// rootCAName is the ConfigMap that Kubernetes creates in each namespace. It distinguishes a namespace from a later one of the same name,
// without the right to read namespaces.
const rootCAName = "kube-root-ca.crt"

// rootCA returns the UID of the ConfigMap kube-root-ca.crt of a namespace.
func (c recreations) rootCA(ctx context.Context, namespace string) (string, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := c.gather.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: rootCAName}, found); err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w", namespace, rootCAName, err)
	}
	return string(found.GetUID()), nil
}

// rootCAToStore is rootCA for a manifest; empty if there is none, or the right to read it is missing. The Job is then created in a later
// namespace of the same name, too. The Job is deleted by its UID after this read: so this is the namespace of the Job.
func (c recreations) rootCAToStore(ctx context.Context, namespace string) (string, error) {
	uid, err := c.rootCA(ctx, namespace)
	if apianswer.NotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return uid, err
}

// createInNamespace creates the Job of a manifest, unless its namespace was deleted and created again: another tenant may own that one,
// so that nothing of the Job must appear there, and no Event either. The ConfigMap alone may have been created again, too: the Secret is left,
// so that no Job is lost.
func (c recreations) createInNamespace(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if r.manifest.RootCA == "" {
		return c.createJob(ctx, s, r)
	}
	uid, err := c.rootCA(ctx, s.Key.Namespace)
	switch {
	case apianswer.NotFound(err):
		return c.awaitRootCA(ctx, s, r)
	case err != nil:
		return failed{s, c.failedCompletion(r.secret.GetName(), err)}
	case uid == r.manifest.RootCA:
		return c.createJob(ctx, s, r)
	}
	log.FromContext(ctx).Info("A Job is not created again in a later namespace of the same name; the Secret is left",
		"job", s.Key, "secret", r.secret.GetName(), "remedy", "delete the Secret; if only the ConfigMap "+rootCAName+
			" of the namespace was created again, create the Job from job.json of the Secret first")
	c.state.Recreations.Done(s.Key, r.secret.GetName())
	return nil
}

// awaitRootCA is createInNamespace where there is no ConfigMap kube-root-ca.crt: the namespace is deleted, or was just created.
func (c recreations) awaitRootCA(ctx context.Context, s gather.Subject, r recreation) Outcome {
	if isNamespaceGone(c.create(ctx, s, r.manifest.Job.DeepCopy(), client.DryRunAll)) {
		return c.endRecreation(ctx, s, r)
	}
	return failed{s, passing(reasonRecreationWaits, "the new Job is created when its namespace has the ConfigMap "+rootCAName+" again")}
}

// isNamespaceGone reports that an object cannot be created because its namespace is deleted, or is being deleted.
func isNamespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apianswer.NotFound(err)
}
