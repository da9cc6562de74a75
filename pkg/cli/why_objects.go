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

// listedObjects are the config objects of a namespace. Each kind is listed when a workload of the second dialect depends on it, so
// that the explanation of others needs no permission to list.
type listedObjects struct {
	list  func(reference.Kind) (annotation.Listed, error)
	known map[reference.Kind]annotation.Listed
	// failed is why the last kind that could not be listed could not.
	failed error
}

var _ annotation.Objects = &listedObjects{}

// metadataAtOnce is how many objects one request lists. The command can run inside of a replica, and an object has up to 256 KiB of
// annotations.
const metadataAtOnce = 50

// listObjects lists the metadata of config objects.
func listObjects(ctx context.Context, c client.Reader, of objectsOf, dialect annotation.Stakater) (annotation.Listed, error) {
	gvk, _ := of.kind.GroupVersionKind()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	objects := annotation.Listed{}
	err := pages(ctx, c, list, func() {
		for _, meta := range list.Items {
			objects[reference.Ref{Kind: of.kind, Name: meta.Name}] = dialect.Traits(of.kind, meta.Labels, meta.Annotations)
		}
	}, client.InNamespace(of.namespace), client.Limit(metadataAtOnce))
	if err != nil && !withoutDriver(of.kind, err) {
		return nil, fmt.Errorf("what the annotations select is not known: list %s: %w", of.kind.Resource(), err)
	}
	return objects, nil
}

// of returns the objects of a kind; none where they cannot be listed.
func (o *listedObjects) of(kind reference.Kind) annotation.Listed {
	objects, known := o.known[kind]
	if !known {
		var err error
		if objects, err = o.list(kind); err != nil {
			o.failed = err
		}
		o.known[kind] = objects
	}
	return objects
}

// Traits returns those of an object.
func (o *listedObjects) Traits(ref reference.Ref) (annotation.Traits, bool) {
	return o.of(ref.Kind).Traits(ref)
}

// Matching returns the names that a pattern matches, in no order.
func (o *listedObjects) Matching(kind reference.Kind, patterns []*pattern.Pattern) []string {
	return o.of(kind).Matching(kind, patterns)
}

// Err says why not all kinds were listed that were asked for.
func (o *listedObjects) Err() error { return o.failed }
