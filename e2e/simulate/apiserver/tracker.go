package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// tracker keeps managed fields with the code and the schemas of Kubernetes.
type tracker struct {
	managers map[scope]*managedfields.FieldManager
}

// scope is what a field manager is for.
type scope struct {
	kind        *kind
	subresource string
}

// defaulter gives the field manager the defaults of the model.
type defaulter struct{}

// Default implements runtime.ObjectDefaulter.
func (defaulter) Default(in runtime.Object) {
	if o, ok := in.(object); ok {
		setDefaults(o)
	}
}

// schemas returns those of all kinds of Kubernetes. They never change, and take long to read.
var schemas = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

func newTracker(all []*kind) (*tracker, error) {
	t := &tracker{managers: map[scope]*managedfields.FieldManager{}}
	for _, k := range all {
		if k.custom {
			continue
		}
		for _, sub := range []string{"", "status"} {
			if sub != "" && !k.Status {
				continue
			}
			m, err := managedfields.NewDefaultFieldManager(schemas(), runtime.UnsafeObjectConvertor(scheme.Scheme), defaulter{}, scheme.Scheme,
				k.gvk, k.gvk.GroupVersion(), sub, reset(k, sub))
			if err != nil {
				return nil, fmt.Errorf("make the field manager of %s: %w", k.gr, err)
			}
			t.managers[scope{k, sub}] = m
		}
	}
	return t, nil
}

// reset returns the fields that a write cannot change, and so does not own.
func reset(k *kind, sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	if !k.Status {
		return nil
	}
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if sub == "status" {
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if k.Resource == world.Deployments {
			set.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
		}
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(k.APIVersion()): fieldpath.NewExcludeSetFilter(set),
	}
}

// trackUpdate notes which fields the request changes. It runs before admission, as in kube-apiserver: what webhooks change
// belongs to no manager. Without a tracker objects have no managed fields.
func (s *Server) trackUpdate(q *request, old, next object) {
	if s.tracker == nil || q.kind.custom {
		metaOf(next).ManagedFields = nil
		return
	}
	m := s.tracker.managers[scope{q.kind, q.subresource}]
	m.UpdateNoErrors(old, next, manager(q.query.Get("fieldManager"), q.http.UserAgent()))
}

// manager returns the owner of what a write changes: the parameter, else the user agent up to its first slash.
func manager(parameter, userAgent string) string {
	if parameter != "" {
		return parameter
	}
	var out strings.Builder
	first, _, _ := strings.Cut(userAgent, "/")
	for _, r := range first {
		if !unicode.IsPrint(r) {
			continue
		}
		if out.Len()+utf8.RuneLen(r) > metav1validation.FieldManagerMaxLength {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// apply answers a server-side apply.
func (s *Server) apply(q *request) (answer, error) {
	options := &metav1.PatchOptions{FieldManager: q.query.Get("fieldManager")}
	if errs := metav1validation.ValidatePatchOptions(options, types.ApplyYAMLPatchType); len(errs) > 0 {
		return answer{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "", errs)
	}
	applied := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(q.call.Body, &applied.Object); err != nil {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if s.store.get(q.kind, q.at, 0) == nil {
		a, err := s.applyNew(q, applied)
		if !apierrors.IsAlreadyExists(err) {
			return a, err
		}
	}
	return s.update(q, func(old *item) (object, error) { return s.applyTo(q, clone(old.typed), applied) })
}

func (s *Server) applyTo(q *request, live object, applied *unstructured.Unstructured) (object, error) {
	m := s.tracker.managers[scope{q.kind, q.subresource}]
	out, err := m.Apply(live, applied.DeepCopy(), q.query.Get("fieldManager"), q.forced())
	if err != nil {
		return nil, err
	}
	next, ok := out.(object)
	if !ok {
		return nil, fmt.Errorf("apply made a %T", out)
	}
	next.GetObjectKind().SetGroupVersionKind(q.kind.gvk)
	return next, nil
}

// applyNew creates what an apply does not find.
func (s *Server) applyNew(q *request, applied *unstructured.Unstructured) (answer, error) {
	if q.subresource != "" {
		return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name)
	}
	wanted, err := s.applyTo(q, q.kind.make(), applied)
	if err != nil {
		return answer{}, err
	}
	if err := q.place(wanted); err != nil {
		return answer{}, err
	}
	wipe(metaOf(wanted))
	if err := s.checkNamespace(q, q.at.namespace, q.at.name); err != nil {
		return answer{}, err
	}
	admitted, err := s.mutate(q, review{operation: admissionv1.Create, object: wanted})
	if err != nil {
		return answer{}, err
	}
	stored, err := s.storeNew(q, admitted, wanted)
	if err != nil {
		return answer{}, err
	}
	return q.ok(http.StatusCreated, stored), nil
}
