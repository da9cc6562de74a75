package configstate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// rechecker reads what a watch that fails does not deliver. It has no state of its own.
type rechecker struct {
	client   *client
	watches  watches
	metadata *metadataCache
	statuses *podStatusCache
}

// object is Store.Recheck for what is no SecretProviderClass.
func (r *rechecker) object(ctx context.Context, k objectKey) error {
	w := r.watches.of(k.ref.Kind, k.namespace)
	if w == nil {
		return nil // out of scope
	}
	from := r.metadata.beforeRead(w)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	found, exists, err := r.client.meta(ctx, k, w.keep)
	if err != nil {
		return err
	}
	meta := &metav1.PartialObjectMetadata{}
	if !exists {
		meta.Namespace, meta.Name = k.namespace, k.ref.Name
		r.metadata.remove(w, meta, from)
		return nil
	}
	fill(meta, found)
	r.metadata.put(w, meta, from)
	return nil
}

// learn is Store.Learn, in one of the lanes.
func (r *rechecker) learn(ctx context.Context, by *lanes, namespace string, refs []reference.Ref) error {
	_, err := each(ctx, namespace, refs, func(ctx context.Context, k objectKey) (digest.State, error) {
		release, err := by.objects.Admit(ctx, k)
		if err != nil {
			return digest.State{}, err
		}
		defer release()
		if _, known := r.metadata.get(k); known {
			return digest.State{}, nil // another call has read it while this one was waiting
		}
		return digest.State{}, r.object(ctx, k)
	})
	return err
}

// class is Store.Recheck for the statuses of a namespace, where a SecretProviderClass has its content.
func (r *rechecker) class(ctx context.Context, k objectKey) error {
	w := r.watches.of(podStatusKind, k.namespace)
	if w == nil {
		return nil // out of scope, or not handled
	}
	from := r.statuses.beforeRead(w)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	read, err := r.client.readPodStatuses(ctx, k.namespace, "")
	if err != nil {
		return err
	}
	r.statuses.replace(w, k.namespace, read, from)
	return nil
}
