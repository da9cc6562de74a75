package configstate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	known, from := r.metadata.beforeRead(w, k)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	found, exists, err := r.client.meta(ctx, k)
	if err != nil {
		return &ReadError{Namespace: k.namespace, Ref: k.ref, Err: err}
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.ref.Name}}
	if !exists {
		r.metadata.remove(w, meta, from)
		return nil
	}
	meta.UID, meta.ResourceVersion = types.UID(found.UID), found.ResourceVersion
	if known.own != nil { // this read leaves them out
		meta.Annotations, meta.Labels = known.own.annotations, known.own.labels
	}
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
