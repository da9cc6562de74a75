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
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// rootCAName is the ConfigMap that Kubernetes creates in each namespace. It distinguishes a namespace from a later one of the same name,
// without the permission to read namespaces.
const rootCAName = "kube-root-ca.crt"

// rootCA returns the UID of the ConfigMap kube-root-ca.crt of a namespace.
func (c recreations) rootCA(ctx context.Context, namespace string) (string, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := c.gather.APIReader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: rootCAName}, found); err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w", namespace, rootCAName, err)
	}
	return string(found.GetUID()), nil
}

// rootCAToStore is rootCA for a manifest; empty if there is none, or the permission to read it is missing. The Job is then created in a
// later namespace of the same name, too. The Job is deleted by its UID after this read: so this is the namespace of the Job.
func (c recreations) rootCAToStore(ctx context.Context, namespace string) (string, error) {
	uid, err := c.rootCA(ctx, namespace)
	if apianswer.NotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return uid, err
}

// inNamespace does the next step for a manifest, unless its namespace was deleted and created again: another tenant may own that one, so
// that nothing of the Job must appear there, and no Event either. The ConfigMap alone may have been created again, too: the Secret is left,
// so that no Job is lost.
func (c recreations) inNamespace(
	ctx context.Context, s gather.Subject, r recreation, next func(context.Context, gather.Subject, recreation) Outcome,
) Outcome {
	if r.manifest.RootCA == "" {
		return next(ctx, s, r)
	}
	uid, err := c.rootCA(ctx, s.Key.Namespace)
	switch {
	case apianswer.NotFound(err):
		return c.awaitRootCA(ctx, s, r)
	case err != nil:
		return failed{unreported(s), failedWrite(s.Object.Kind, reasonRecreationFailed, fmt.Errorf(
			"whether this is the namespace of the Job in secret %s/%s, or a later one of the same name, is not known: %w",
			r.secret.GetNamespace(), r.secret.GetName(), err))}
	case uid == r.manifest.RootCA:
		return next(ctx, s, r)
	}
	log.FromContext(ctx).Info("a Job is not created again in a later namespace of the same name; the Secret is left",
		"workload", s.Key, "secret", r.secret.GetNamespace()+"/"+r.secret.GetName(), "remedy", "delete the Secret; if only the ConfigMap "+
			rootCAName+" of the namespace was created again, create the Job from job.json of the Secret first")
	c.state.Recreations.Leave(s.Key, r.secret.GetName())
	return nil
}

// unreported is a subject without the object that Events are on: the namespace may be another tenant's.
func unreported(s gather.Subject) gather.Subject {
	s.Object = workload.Summary{Kind: s.Object.Kind}
	return s
}

// awaitRootCA is inNamespace where there is no ConfigMap kube-root-ca.crt: the namespace is deleted, or was just created.
func (c recreations) awaitRootCA(ctx context.Context, s gather.Subject, r recreation) Outcome {
	err := c.create(ctx, s, r.manifest.Job.DeepCopy(), client.DryRunAll)
	switch {
	case apianswer.NamespaceGone(err):
		return c.endRecreation(ctx, unreported(s), r)
	case err == nil, apianswer.AlreadyExists(err):
		return failed{unreported(s), transientFailure(reasonRecreationWaits, fmt.Sprintf(
			"the Job in secret %s/%s is created when its namespace has the ConfigMap %s again", r.secret.GetNamespace(), r.secret.GetName(), rootCAName))}
	default:
		return failed{unreported(s), failedWrite(s.Object.Kind, reasonRecreationFailed, err)}
	}
}
