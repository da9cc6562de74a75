package cli

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// listed are the config objects of a namespace with what their metadata says in the second dialect.
type listed map[reference.Ref]annotation.Traits

var _ annotation.Objects = listed{}

// listObjects lists the metadata of the config objects of a namespace. It is needed for workloads of the second dialect only.
func listObjects(ctx context.Context, c client.Reader, namespace string, dialect annotation.Stakater) (annotation.Objects, error) {
	objects := listed{}
	for _, kind := range dialect.Kinds() {
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

// Traits returns what the metadata of an object says.
func (l listed) Traits(ref reference.Ref) (annotation.Traits, bool) {
	traits, ok := l[ref]
	return traits, ok
}

// Matching returns the names that a pattern matches.
func (l listed) Matching(kind reference.Kind, p *pattern.Pattern) []string {
	var names []string
	for ref := range l {
		if ref.Kind == kind && p.Match(ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}
