package action

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
func rootCA(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	name := types.NamespacedName{Namespace: namespace, Name: rootCAName}
	uid, err := readUID(ctx, reader, corev1.SchemeGroupVersion.WithKind("ConfigMap"), name)
	if err != nil {
		return "", fmt.Errorf("read configmap %s: %w", name, err)
	}
	return uid, nil
}

// readUID reads the UID of an object.
func readUID(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, name types.NamespacedName) (string, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	err := reader.Get(ctx, name, found)
	return string(found.GetUID()), err
}

// inNamespace does the next step for a manifest, unless its namespace was deleted and created again: another tenant may own that one, so
// that nothing of the Job must appear there, and no Event either. The ConfigMap alone may have been created again, too: the Secret is left,
// so that no Job is lost.
func (c completions) inNamespace(
	ctx context.Context, s gather.Subject, r recreation, next func(context.Context, gather.Subject, recreation) Outcome,
) Outcome {
	if r.manifest.RootCA == "" {
		return next(ctx, s, r)
	}
	uid, err := rootCA(ctx, c.gather.APIReader, s.Key.Namespace)
	switch {
	case apianswer.NotFound(err):
		return c.awaitRootCA(ctx, s, r)
	case err != nil:
		return failed{unreported(s), failedWrite(s.Object.Kind, reasonRecreationFailed, fmt.Errorf(
			"whether this is the namespace of the Job in secret %s, or a later one of the same name, is not known: %w", r.name(), err))}
	case uid == r.manifest.RootCA:
		return next(ctx, s, r)
	}
	log.FromContext(ctx).Info("a Job is not created again in a later namespace of the same name; the Secret is left",
		"workload", s.Key, "secret", r.name().String(), "remedy", "delete the Secret; if only the ConfigMap "+
			rootCAName+" of the namespace was created again, create the Job from job.json of the Secret first")
	c.manifests.known.Leave(s.Key, r.secret.GetName())
	return nil
}

// unreported is a subject without the object that Events are on: the namespace may be another tenant's.
func unreported(s gather.Subject) gather.Subject {
	s.Object = workload.Summary{Kind: s.Object.Kind}
	return s
}

// awaitRootCA is inNamespace where there is no ConfigMap kube-root-ca.crt: the namespace is deleted, or was just created.
func (c completions) awaitRootCA(ctx context.Context, s gather.Subject, r recreation) Outcome {
	err := c.create(ctx, s, r.manifest.Job.DeepCopy(), client.DryRunAll)
	switch {
	case apianswer.NamespaceGone(err):
		return c.end(ctx, unreported(s), r)
	case err == nil, apianswer.AlreadyExists(err):
		return failed{unreported(s), transientFailure(reasonRecreationWaits, fmt.Sprintf(
			"the Job in secret %s is created when its namespace has the ConfigMap %s again", r.name(), rootCAName))}
	default:
		return failed{unreported(s), failedWrite(s.Object.Kind, reasonRecreationFailed, err)}
	}
}
