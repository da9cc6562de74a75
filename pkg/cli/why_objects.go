package cli

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// listObjects lists the metadata of the config objects of a namespace. It is needed for workloads of the second dialect only.
func listObjects(ctx context.Context, c client.Reader, namespace string, dialect annotation.Stakater) (annotation.Objects, error) {
	objects := annotation.Listed{}
	for _, kind := range dialect.HandledKinds() {
		gvk, _ := kind.GroupVersionKind()
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("what the annotations select is not known: list %s: %w", kind.Resource(), err)
		}
		for _, meta := range list.Items {
			objects[reference.Ref{Kind: kind, Name: meta.Name}] = dialect.Traits(kind, meta.Labels, meta.Annotations)
		}
	}
	return objects, nil
}
