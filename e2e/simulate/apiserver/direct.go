package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The methods here are for the models of controllers and for the oracle. They need no request, call no webhook and meet no
// fault; commits have no Call. Of what is stored so only the size of the annotations is validated: controllers copy those of
// users.

// Get returns an object, which is shared.
func (s *Server) Get(key world.Key) (world.Object, bool) {
	k, err := s.kindOf(key.Resource)
	if err != nil {
		return nil, false
	}
	found := s.store.get(k, placeOf(key), 0)
	if found == nil {
		return nil, false
	}
	return found.object(), true
}

// List returns the objects of a resource in a namespace, or in all, sorted by namespace and name. They are shared.
func (s *Server) List(resource world.Resource, namespace string) []world.Object {
	k, err := s.kindOf(resource)
	if err != nil {
		return nil
	}
	items, _ := s.store.list(k, selection{namespace: namespace}, 0)
	objects := make([]world.Object, len(items))
	for n, i := range items {
		objects[n] = i.object()
	}
	return objects
}

// Version returns the version of the last change.
func (s *Server) Version() int64 { return s.store.now() }

// Compact makes watches from older versions end as expired. The changes are kept for servers that lag.
func (s *Server) Compact(version int64) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.compacted = max(s.store.compacted, min(version, s.store.version))
}

// Store creates or replaces an object, its status too, and returns what is stored. Defaults are set; UID, times, generation
// and version are the Server's. If the object bears a resourceVersion that is not the stored one it fails with a conflict.
// The object given is not kept.
func (s *Server) Store(key world.Key, o world.Object) (world.Object, error) {
	return s.storeDirectly(key, o, func(k *kind, next object, old *item) error {
		if old == nil {
			given := clone(next)
			metaOf(next).Generation = 0
			s.identify(metaOf(next))
			prepareCreate(k, next)
			if _, ok := o["status"]; ok {
				copyStatus(next, given)
			}
			return nil
		}
		meta, before := metaOf(next), old.meta()
		meta.UID, meta.CreationTimestamp, meta.Generation = before.UID, before.CreationTimestamp, before.Generation
		raise(k, next, old.typed)
		return nil
	})
}

// StoreStatus changes the status of an object that exists, by the rules of the status subresource.
func (s *Server) StoreStatus(key world.Key, o world.Object) (world.Object, error) {
	return s.storeDirectly(key, o, func(k *kind, next object, old *item) error {
		if old == nil {
			return apierrors.NewNotFound(k.gr, key.Name)
		}
		meta, before := metaOf(next), old.meta()
		meta.UID, meta.CreationTimestamp, meta.Generation = before.UID, before.CreationTimestamp, before.Generation
		prepareStatus(next, old.typed)
		meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = before.DeletionTimestamp, before.DeletionGracePeriodSeconds
		return nil
	})
}

// storeDirectly repeats a write until it is stored. Prepare gets nil if there is no object, and may refuse that.
func (s *Server) storeDirectly(key world.Key, o world.Object, prepare func(*kind, object, *item) error) (world.Object, error) {
	k, err := s.kindOf(key.Resource)
	if err != nil {
		return nil, err
	}
	for {
		old := s.store.get(k, placeOf(key), 0)
		i, err := direct(k, key, o, old, prepare)
		if err != nil {
			return nil, err
		}
		if old != nil && i.same(old) {
			return old.object(), nil
		}
		if stored := s.store.commit(write{kind: k, at: placeOf(key), expect: old, next: i}); stored != nil {
			return stored.object(), nil
		}
	}
}

// direct makes the item that a direct write stores.
func direct(k *kind, key world.Key, o world.Object, old *item, prepare func(*kind, object, *item) error) (*item, error) {
	next, err := fromChanged(k, o, old)
	if err != nil {
		return nil, err
	}
	meta := metaOf(next)
	meta.Namespace, meta.Name = key.Namespace, key.Name
	if old != nil && meta.ResourceVersion != "" && meta.ResourceVersion != old.meta().ResourceVersion {
		return nil, errModified(k, key.Name)
	}
	setDefaults(next)
	if err := prepare(k, next, old); err != nil {
		return nil, err
	}
	if old != nil {
		meta.ResourceVersion = old.meta().ResourceVersion
	}
	if err := apivalidation.ValidateAnnotationsSize(meta.Annotations); err != nil {
		return nil, invalid(k, next, field.ErrorList{field.TooLong(metadataPath.Child("annotations"), "", apivalidation.TotalAnnotationSizeLimitB)})
	}
	return newItem(k, next, old), nil
}

// Remove deletes an object, whatever finalizers it has. It returns false if there is none.
func (s *Server) Remove(key world.Key) bool {
	k, err := s.kindOf(key.Resource)
	if err != nil {
		return false
	}
	for {
		old := s.store.get(k, placeOf(key), 0)
		if old == nil {
			return false
		}
		if s.store.commit(write{kind: k, at: placeOf(key), expect: old}) != nil {
			return true
		}
	}
}

func (s *Server) kindOf(r world.Resource) (*kind, error) {
	k := s.served[served{r.Group, r.Version, r.Plural}]
	if k == nil {
		return nil, fmt.Errorf("the model serves no %s", r.Plural)
	}
	return k, nil
}

func placeOf(key world.Key) name { return name{key.Namespace, key.Name} }

// fromChanged is fromValues, but what is one with the form of the stored object is taken from that object.
func fromChanged(k *kind, o world.Object, old *item) (object, error) {
	if old == nil || old.spec == nil {
		return fromValues(k, o)
	}
	known, rest := old.object(), world.Object{}
	for part, value := range o {
		if given, ok := value.(map[string]any); !ok || !world.Same(given, world.Section(known, part)) {
			rest[part] = value
		}
	}
	next, err := fromValues(k, rest)
	if err != nil {
		return nil, err
	}
	kept := func(part string) bool { return rest[part] == nil && o[part] != nil }
	if kept("metadata") {
		*metaOf(next) = *old.meta().DeepCopy()
	}
	if kept("spec") {
		copySpec(next, old.typed)
	}
	if kept("status") {
		copyStatus(next, old.typed)
	}
	return next, nil
}

func fromValues(k *kind, o world.Object) (object, error) {
	next := k.make()
	if err := valuesInto(o, next); err != nil {
		return nil, fmt.Errorf("convert the object to a %s: %w", k.Kind, err)
	}
	next.GetObjectKind().SetGroupVersionKind(k.gvk)
	return next, nil
}
