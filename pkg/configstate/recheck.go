package configstate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Recheck reads the metadata of one config object and takes it in as if its watch had delivered it: where it is another
// version than the one that is known, the handlers of OnEvent are called. It is for the time in which the watch fails. What
// the watch delivers while the read is under way may be newer, and stays.
func (s *Store) Recheck(ctx context.Context, namespace string, ref reference.Ref) error {
	k := objectKey{namespace, ref}
	if ref.Kind == reference.SecretProviderClass {
		return s.recheckClass(ctx, k)
	}
	w := s.watcherOf(k)
	if w == nil {
		return nil // out of scope
	}
	s.mu.RLock()
	from, known := origin{read: true, delivered: s.delivered[w]}, s.objects[scopeKey{ref.Kind, namespace}][ref.Name]
	s.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	found, exists, err := s.client.meta(ctx, k)
	if err != nil {
		return &ReadError{Namespace: namespace, Ref: ref, Err: err}
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}}
	if !exists {
		s.remove(w, meta, from)
		return nil
	}
	meta.UID, meta.ResourceVersion = types.UID(found.UID), found.ResourceVersion
	if known.own != nil { // this read leaves them out
		meta.Annotations, meta.Labels = known.own.annotations, known.own.labels
	}
	s.put(w, meta, from)
	return nil
}
