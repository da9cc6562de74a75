package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// attempts is how often a generated name is drawn anew when it is taken.
const attempts = 8

// create answers a POST.
func (s *Server) create(q *request) (answer, error) {
	o, err := q.decode()
	if err != nil {
		return answer{}, err
	}
	created, err := s.createObject(q, o)
	if err != nil {
		return answer{}, err
	}
	return q.ok(http.StatusCreated, created), nil
}

// createObject takes a decoded object through admission into the store.
func (s *Server) createObject(q *request, o object) (*item, error) {
	meta := metaOf(o)
	wipe(meta)
	if err := q.place(o); err != nil {
		return nil, err
	}
	if err := s.checkNamespace(q, meta.Namespace, meta.Name); err != nil {
		return nil, err
	}
	s.trackUpdate(q, q.kind.make(), o)
	admitted, err := s.mutate(q, review{operation: admissionv1.Create, object: o})
	if err != nil {
		return nil, err
	}
	return s.storeNew(q, admitted, o)
}

// storeNew stores an object that was admitted; wanted is what it was before.
func (s *Server) storeNew(q *request, admitted, wanted object) (*item, error) {
	meta := metaOf(admitted)
	for range attempts {
		generated := meta.Name == "" && meta.GenerateName != ""
		s.identify(meta)
		prepareCreate(q.kind, admitted)
		if err := validateCreate(q.kind, admitted); err != nil {
			return nil, q.invalid(err, wanted, admitted, func(sent object) error {
				as := metaOf(sent)
				as.Name, as.UID, as.CreationTimestamp = meta.Name, meta.UID, meta.CreationTimestamp
				prepareCreate(q.kind, sent)
				return validateCreate(q.kind, sent)
			})
		}
		if err := s.validate(q, review{operation: admissionv1.Create, object: admitted}); err != nil {
			return nil, err
		}
		// The storage refuses it with an error that is no Status.
		if meta.ResourceVersion != "" {
			return nil, errors.New("resourceVersion should not be set on objects to be created")
		}
		at := name{meta.Namespace, meta.Name}
		if stored := s.insert(q, at, admitted, wanted); stored != nil {
			return stored, nil
		}
		if err := q.ended(); err != nil {
			return nil, err
		}
		if !generated {
			return nil, s.exists(q, at)
		}
		meta.Name = ""
	}
	return nil, apierrors.NewGenerateNameConflict(q.kind.gr, meta.GenerateName, 1)
}

// identify gives a new object its name, UID and time.
func (s *Server) identify(meta *metav1.ObjectMeta) {
	n := s.store.nextIdentity()
	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = meta.GenerateName + suffix(n)
	}
	meta.UID, meta.CreationTimestamp = uid(n), now()
}

// insert stores a new object, or pretends to in a dry run; nil means that the place is taken.
func (s *Server) insert(q *request, at name, o, wanted object) *item {
	w := write{kind: q.kind, at: at, next: newItem(q.kind, o), call: q.call}
	if q.call.DryRun {
		if s.store.get(q.kind, at, 0) != nil {
			return nil
		}
		return w.next
	}
	if wanted != o {
		w.sent = func() world.Object { return sentCreate(q.kind, o, wanted) }
	}
	return s.store.commit(w)
}

// sentCreate returns what would be stored if no webhook had changed it.
func sentCreate(k *kind, stored, wanted object) world.Object {
	sent, from := clone(wanted), metaOf(stored)
	meta := metaOf(sent)
	meta.Name, meta.UID, meta.CreationTimestamp, meta.ResourceVersion = from.Name, from.UID, from.CreationTimestamp, from.ResourceVersion
	prepareCreate(k, sent)
	return toValues(sent)
}

func (s *Server) exists(q *request, at name) error {
	err := apierrors.NewAlreadyExists(q.kind.gr, at.name)
	if found := s.store.get(q.kind, at, 0); found != nil && found.meta().DeletionTimestamp != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// checkNamespace refuses a create in a namespace that is missing or being deleted.
func (s *Server) checkNamespace(q *request, namespace, object string) error {
	if !q.kind.Namespaced {
		return nil
	}
	namespaces := s.served[served{"", "v1", "namespaces"}]
	found := s.store.get(namespaces, name{name: namespace}, 0)
	if found == nil {
		return apierrors.NewNotFound(namespaces.gr, namespace)
	}
	if found.typed.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(q.kind.gr, object,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return err
}
