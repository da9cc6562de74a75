package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	wanted := metaOf(sent).UID
	if q.kind.putCreates && q.subresource == "" && s.store.get(q.kind, q.at, 0) == nil {
		return s.putNew(q, sent)
	}
	return s.update(q, func(old *item) (object, error) {
		if have := old.meta().UID; wanted != "" && wanted != have {
			return nil, errOther(q, wanted, have)
		}
		next := clone(sent)
		s.trackUpdate(q, old.typed, next)
		return next, nil
	})
}

// putNew creates what a PUT does not find.
func (s *Server) putNew(q *request, sent object) (answer, error) {
	meta := metaOf(sent)
	if meta.UID != "" {
		return answer{}, errOther(q, meta.UID, "")
	}
	meta.ResourceVersion = ""
	created, err := s.createObject(q, sent)
	if err != nil {
		return answer{}, err
	}
	return q.ok(http.StatusCreated, created), nil
}

// errOther is the conflict of a PUT of an object that was replaced by another of the same name.
func errOther(q *request, wanted, have types.UID) error {
	place := q.at.name
	if q.at.namespace != "" {
		place = q.at.namespace + "/" + place
	}
	text := fmt.Sprintf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, "+
		"AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s", q.kind.Plural, place, wanted, have)
	return apierrors.NewConflict(q.kind.gr, q.at.name, errors.New(text))
}

// update repeats a producer until its outcome is stored, as the API server does while nothing pins a resourceVersion: each
// time with the newest object, and through admission again. The time of the request is the only bound.
//
// The first attempt works on the object in the watch cache of the API server. Whatever its outcome but success, an error or
// no change, it counts only if that object is still the stored one.
func (s *Server) update(q *request, produce producer) (answer, error) {
	old, first := s.cached(q), true
	for {
		if old == nil {
			return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name)
		}
		stored, err := s.attempt(q, old, produce)
		if err == nil && stored != nil && stored != old && !q.call.DryRun {
			return q.ok(http.StatusOK, stored), nil
		}
		current := s.store.get(q.kind, q.at, 0)
		if !first || current == old {
			if err != nil {
				return answer{}, err
			}
			if stored != nil {
				return q.ok(http.StatusOK, stored), nil
			}
		}
		q.webhook = "" // what rejected this attempt does not matter any more
		if err := q.ended(); err != nil {
			return answer{}, err
		}
		old, first = current, false
	}
}

// cached returns the object as the server knows it, which lags behind or not.
func (s *Server) cached(q *request) *item {
	if q.fate.Lag > 0 {
		if old := s.store.get(q.kind, q.at, max(s.store.now()-q.fate.Lag, s.store.first())); old != nil {
			return old
		}
	}
	return s.store.get(q.kind, q.at, 0)
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
	q.prepare(admitted, old.typed)
	next := newItem(q.kind, admitted, old)
	if err := validateUpdate(next, old); err != nil {
		return nil, q.invalid(err, wanted, admitted, func(sent object) error {
			q.prepare(sent, old.typed)
			return validateUpdate(newItem(q.kind, sent, old), old)
		})
	}
	if err := s.validate(q, review{operation: admissionv1.Update, object: admitted, old: old, form: next}); err != nil {
		return nil, err
	}
	return s.replace(q, old, next, wanted)
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
		meta.ResourceVersion = old.meta().ResourceVersion
		return nil
	}
	version, err := parseVersion(meta.ResourceVersion)
	if err != nil {
		return err
	}
	if formatVersion(version) != old.meta().ResourceVersion {
		return errModified(q.kind, q.at.name)
	}
	return nil
}

// prepare resets what this update cannot change.
func (q *request) prepare(next, old object) {
	meta, before := metaOf(next), metaOf(old)
	meta.Generation = before.Generation
	if q.subresource == "status" {
		prepareStatus(next, old)
	} else {
		prepareUpdate(q.kind, next, old)
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
	if q.server.tracker == nil {
		meta.ManagedFields = nil
	}
}

// replace stores an admitted update.
func (s *Server) replace(q *request, old, next *item, wanted object) (*item, error) {
	meta := next.meta()
	meta.ResourceVersion = old.meta().ResourceVersion
	next.forget()
	if unchanged(next, old) {
		return old, nil
	}
	w := write{kind: q.kind, at: q.at, expect: old, next: next, call: q.call}
	if wanted != next.typed {
		w.sent = func() world.Object { return q.sentUpdate(wanted, next, old) }
	}
	if meta.DeletionTimestamp != nil && old.meta().DeletionTimestamp != nil && released(next.typed) {
		// The last finalizer is gone, and with it the object.
		w.next = nil
	}
	if q.call.DryRun {
		return next, nil
	}
	stored := s.store.commit(w)
	if stored != nil && w.next == nil {
		return next, nil // the answer is what the client made of it
	}
	return stored, nil
}

// released reports whether nothing holds up the end of an object that is being deleted.
func released(o object) bool {
	if n, ok := o.(*corev1.Namespace); ok && len(n.Spec.Finalizers) > 0 {
		return false
	}
	return len(metaOf(o).Finalizers) == 0
}

// unchanged reports whether an update would store what is stored. New times in the managed fields alone are no change.
func unchanged(next, old *item) bool {
	meta, before := next.meta(), old.meta()
	if len(meta.ManagedFields) == 0 || len(meta.ManagedFields) != len(before.ManagedFields) {
		return next.same(old)
	}
	fields := slices.Clone(meta.ManagedFields)
	for n := range meta.ManagedFields {
		meta.ManagedFields[n].Time = before.ManagedFields[n].Time
	}
	if next.same(old) {
		return true
	}
	meta.ManagedFields = fields
	next.forget()
	return false
}

// sentUpdate returns what would be stored if no webhook had changed it.
func (q *request) sentUpdate(wanted object, stored, old *item) world.Object {
	sent := clone(wanted)
	q.prepare(sent, old.typed)
	metaOf(sent).ResourceVersion = stored.meta().ResourceVersion
	return newItem(q.kind, sent, stored, old).object()
}
