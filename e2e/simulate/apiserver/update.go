package apiserver

import (
	"bytes"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// producer makes the object that an update wants to be stored out of the one that is.
type producer func(old *item) (object, error)

// put answers a PUT.
func (s *Server) put(q *request) (answer, error) {
	sent, err := q.decode()
	if err != nil {
		return answer{}, err
	}
	if err := q.place(sent); err != nil {
		return answer{}, err
	}
	if q.kind.putCreates && q.subresource == "" && s.store.get(q.kind, q.at, 0) == nil {
		created, err := s.createObject(q, sent)
		if err != nil {
			return answer{}, err
		}
		return q.ok(http.StatusCreated, created), nil
	}
	wanted := metaOf(sent).UID
	return s.update(q, func(old *item) (object, error) {
		if have := old.meta().UID; wanted != "" && wanted != have {
			return nil, apierrors.NewConflict(q.kind.gr, q.at.name, fmt.Errorf(
				"Precondition failed: UID in precondition: %s, UID in object meta: %s", wanted, have)) //nolint:staticcheck // the words of kube-apiserver
		}
		next := clone(sent)
		s.trackUpdate(q, old.typed, next)
		return next, nil
	})
}

// update repeats a producer until its outcome is stored, as the API server does while nothing pins a resourceVersion: each
// time with the newest object, and through admission again. The time of the request is the only bound.
func (s *Server) update(q *request, produce producer) (answer, error) {
	old, stale := s.updated(q)
	for {
		if old == nil {
			return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name)
		}
		stored, err := s.attempt(q, old, produce)
		if err == nil && stored != nil && stored != old && !q.call.DryRun {
			return q.ok(http.StatusOK, stored), nil
		}
		current := s.store.get(q.kind, q.at, 0)
		if !stale || current == old {
			if err != nil {
				return answer{}, err
			}
			if stored != nil {
				return q.ok(http.StatusOK, stored), nil
			}
		}
		if err := q.ended(); err != nil {
			return answer{}, err
		}
		old, stale = current, false
	}
}

// updated returns the object to begin with, and whether it may be an older version, out of the cache of a server that lags.
func (s *Server) updated(q *request) (old *item, stale bool) {
	if q.fate.Lag > 0 {
		if old := s.store.get(q.kind, q.at, max(s.store.now()-q.fate.Lag, 1)); old != nil {
			return old, true
		}
	}
	return s.store.get(q.kind, q.at, 0), false
}

// attempt makes one write out of what is stored. It returns nil if the object has changed meanwhile, and the old item if
// nothing changes.
func (s *Server) attempt(q *request, old *item, produce producer) (*item, error) {
	wanted, err := produce(old)
	if err != nil {
		return nil, err
	}
	if err := q.place(wanted); err != nil {
		return nil, err
	}
	admitted, err := s.mutate(q, review{operation: admissionv1.Update, object: wanted, old: old})
	if err != nil {
		return nil, err
	}
	if err := q.checkVersion(admitted, old); err != nil {
		return nil, err
	}
	q.prepare(admitted, old)
	if err := validateUpdate(q.kind, admitted, old.typed); err != nil {
		return nil, err
	}
	if err := s.validate(q, review{operation: admissionv1.Update, object: admitted, old: old}); err != nil {
		return nil, err
	}
	return s.replace(q, old, admitted, wanted)
}

// checkVersion compares the resourceVersion that the write bears. Admission comes first, as in the API server: a webhook
// sees writes that turn out to be conflicts.
func (q *request) checkVersion(next object, old *item) error {
	meta := metaOf(next)
	if meta.ResourceVersion == "" || meta.ResourceVersion == "0" {
		if q.kind.guarded {
			return apierrors.NewInvalid(schema.GroupKind{Group: q.kind.Group, Kind: q.kind.Plural}, q.at.name,
				field.ErrorList{field.Invalid(metadataPath.Child("resourceVersion"), 0, "must be specified for an update")})
		}
		meta.ResourceVersion = formatVersion(old.version)
		return nil
	}
	version, err := parseVersion(meta.ResourceVersion)
	if err != nil {
		return err
	}
	if version != old.version {
		return errModified(q.kind, q.at.name)
	}
	return nil
}

// prepare resets what this update cannot change.
func (q *request) prepare(next object, old *item) {
	meta, before := metaOf(next), old.meta()
	meta.Generation, meta.SelfLink = before.Generation, ""
	if q.subresource == "status" {
		prepareStatus(next, old.typed)
	} else {
		prepareUpdate(q.kind, next, old.typed)
	}
	if meta.UID == "" {
		meta.UID = before.UID
	}
	meta.CreationTimestamp = before.CreationTimestamp
	if before.DeletionTimestamp != nil {
		meta.DeletionTimestamp = before.DeletionTimestamp
	}
	if meta.DeletionGracePeriodSeconds == nil {
		meta.DeletionGracePeriodSeconds = before.DeletionGracePeriodSeconds
	}
	if q.server.tracker == nil || !q.kind.tracked {
		meta.ManagedFields = nil
	}
}

// replace stores an admitted update.
func (s *Server) replace(q *request, old *item, next, wanted object) (*item, error) {
	meta := metaOf(next)
	meta.ResourceVersion = formatVersion(old.version)
	next.GetObjectKind().SetGroupVersionKind(q.kind.gvk)
	if unchanged(next, old) {
		return old, nil
	}
	w := write{kind: q.kind, at: q.at, expect: old, next: next, call: q.call}
	if wanted != next {
		w.sent = func() world.Object { return q.sentUpdate(wanted, next, old) }
	}
	if meta.DeletionTimestamp != nil && old.meta().DeletionTimestamp != nil && released(next) {
		// The last finalizer is gone, and with it the object.
		w.next = nil
	}
	if q.call.DryRun {
		return &item{kind: q.kind, version: old.version, typed: next, raw: marshal(next)}, nil
	}
	return s.store.commit(w), nil
}

// released tells whether nothing holds up the end of an object that is being deleted.
func released(o object) bool {
	if n, ok := o.(*corev1.Namespace); ok && len(n.Spec.Finalizers) > 0 {
		return false
	}
	return len(metaOf(o).Finalizers) == 0
}

// unchanged tells whether an update would store what is stored. New times in the managed fields alone are no change.
func unchanged(next object, old *item) bool {
	meta, before := metaOf(next), old.meta()
	fields := meta.ManagedFields
	if len(fields) > 0 && len(fields) == len(before.ManagedFields) {
		older := append(fields[:0:0], fields...)
		for n := range older {
			older[n].Time = before.ManagedFields[n].Time
		}
		meta.ManagedFields = older
	}
	if bytes.Equal(marshal(next), old.raw) {
		return true
	}
	meta.ManagedFields = fields
	return false
}

// sentUpdate returns what would be stored if no webhook had changed it.
func (q *request) sentUpdate(wanted, stored object, old *item) world.Object {
	sent := clone(wanted)
	q.prepare(sent, old)
	metaOf(sent).ResourceVersion = metaOf(stored).ResourceVersion
	return toValues(sent)
}
