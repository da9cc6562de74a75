package configstate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		return &ReadError{Namespace: k.namespace, Ref: k.ref, Err: err}
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
		return &ReadError{Namespace: k.namespace, Ref: k.ref, Err: err}
	}
	r.statuses.replace(w, k.namespace, read, from)
	return nil
}
