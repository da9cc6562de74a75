package action

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
)

// manifestsOfNamespace is how many Secrets there are with manifests of one namespace, and a few more where several Jobs are deleted at the
// same time. A user of the namespace can make each of them stay, by what refuses the new Job, or by another rootCA.
const manifestsOfNamespace = 100

// manifestLimit returns an error if a namespace has as many manifests as it may have. A Secret that is left counts until it is deleted:
// whether it is, is asked for one of them, since each Job asks again at each attempt.
func (c recreations) manifestLimit(ctx context.Context, namespace string) error {
	count, left := c.state.Recreations.In(namespace)
	if count < manifestsOfNamespace {
		return nil
	}
	if left.Secret != "" {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		name := types.NamespacedName{Namespace: c.jobs.Store.Namespace, Name: left.Secret}
		if apianswer.NotFound(c.gather.APIReader.Get(ctx, name, found)) {
			c.state.Recreations.Done(left.Job, left.Secret)
			return c.manifestLimit(ctx, namespace)
		}
	}
	return fmt.Errorf("the Job keeps the configuration that it was started with, because %d Jobs of its namespace wait to be created again; "+
		"where they wait for long, %s", manifestsOfNamespace, c.byHand())
}
