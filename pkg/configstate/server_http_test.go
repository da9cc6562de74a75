package configstate_test

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, hold := s.refusal(r), s.hold
	s.mu.Unlock()
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/apis/secrets-store.csi.x-k8s.io/v1/")
	parts := strings.Split(path, "/")
	namespace := ""
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	switch {
	case status != 0:
		s.fail(w, status)
	case parts[0] == "secretproviderclasspodstatuses":
		s.podStatuses.serve(w, r, namespace)
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		s.watch(w, r, parts[0], namespace)
	case len(parts) == 1:
		s.list(w, r, parts[0], namespace)
	default:
		s.get(w, r, hold)
	}
}

func (s *server) refusal(r *http.Request) int {
	for prefix, status := range s.refuse {
		if strings.HasPrefix(r.URL.Path+"$", prefix) {
			s.refused++
			return status
		}
	}
	return 0
}

// fail refuses, as a proxy between client and server can.
func (s *server) fail(w http.ResponseWriter, code int) {
	s.answer(w, apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "as the test wants", 0, true))
}

// failBehind says what an API server does whose cache has not come up to a resourceVersion for some seconds.
func (s *server) failBehind(w http.ResponseWriter) {
	failure := apierrors.NewTimeoutError("Too large resource version", 1)
	failure.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	s.answer(w, failure)
}

func (s *server) answer(w http.ResponseWriter, failure *apierrors.StatusError) {
	failure.ErrStatus.APIVersion, failure.ErrStatus.Kind = "v1", "Status"
	w.WriteHeader(int(failure.ErrStatus.Code))
	_, _ = w.Write(s.encode(&failure.ErrStatus))
}

func (s *server) get(w http.ResponseWriter, r *http.Request, hold func(*http.Request)) {
	verb := "get "
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;") {
		verb = "meta "
	}
	s.mu.Lock()
	seen := verb + r.URL.Path
	if atLeast := r.URL.Query().Get("resourceVersion"); atLeast != "" {
		seen += " from " + atLeast
	}
	s.requests = append(s.requests, seen)
	if s.behind && r.URL.Query().Get("resourceVersion") != "" {
		s.mu.Unlock()
		s.failBehind(w)
		return
	}
	object, ok := s.objects[r.URL.Path]
	s.mu.Unlock()
	if hold != nil {
		hold(r)
	}
	switch {
	case !ok:
		s.answer(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
	case verb == "meta ":
		_, _ = w.Write(s.encode(s.partial(object)))
	default:
		_, _ = w.Write(s.encode(object))
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, "list "+r.URL.Path)
	if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
		s.listExact(w, r, resource)
		return
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version), Continue: s.more}}
	for _, object := range s.objects {
		if resourceOf(object) == resource && (namespace == "" || namespace == object.GetNamespace()) {
			list.Items = append(list.Items, *s.partial(object))
		}
	}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	_, _ = w.Write(s.encode(list))
}

// listExact answers for one object as it was at a version. Versions up to 100 are compacted.
func (s *server) listExact(w http.ResponseWriter, r *http.Request, resource string) {
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if version <= 100 {
		s.answer(w, apierrors.NewResourceExpired("compacted"))
		return
	}
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	object := s.exactly(r.URL.Path+"/"+name, version)
	if resource == "secrets" {
		list := &corev1.SecretList{}
		if object != nil {
			list.Items = append(list.Items, *object.(*corev1.Secret))
		}
		_, _ = w.Write(s.encode(list))
		return
	}
	list := &corev1.ConfigMapList{}
	if object != nil {
		list.Items = append(list.Items, *object.(*corev1.ConfigMap))
	}
	_, _ = w.Write(s.encode(list))
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	if initial && s.noStreams {
		s.fail(w, http.StatusUnprocessableEntity)
		return
	}
	s.mu.Lock()
	current := &watching{resource, namespace, make(chan []byte, 100), make(chan struct{})}
	s.watches[current] = true
	var first [][]byte
	if initial {
		for _, object := range s.objects {
			if current.matches(resourceOf(object), object.GetNamespace()) {
				first = append(first, s.event("ADDED", s.partial(object)))
			}
		}
		first = append(first, s.bookmarkLocked())
	}
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for _, h := range s.history {
		if !initial && h.version > since && current.matches(h.resource, h.namespace) {
			first = append(first, h.event)
		}
	}
	s.mu.Unlock()
	flush := http.NewResponseController(w)
	for _, event := range first {
		_, _ = w.Write(event)
	}
	_ = flush.Flush()
	for {
		select {
		case event := <-current.events:
			_, _ = w.Write(event)
			_ = flush.Flush()
		case <-current.closed:
			return
		case <-r.Context().Done():
			s.mu.Lock()
			delete(s.watches, current)
			s.mu.Unlock()
			return
		}
	}
}

func (s *server) bookmarkLocked() []byte {
	bookmark := &metav1.PartialObjectMetadata{}
	bookmark.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	bookmark.ResourceVersion = strconv.Itoa(s.version)
	bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return s.event("BOOKMARK", bookmark)
}

func (s *server) partial(object client) *metav1.PartialObjectMetadata {
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Annotations: object.GetAnnotations(), Labels: object.GetLabels(),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1("{}")}},
	}}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return partial
}

func (s *server) encode(object runtime.Object) []byte {
	if object.GetObjectKind().GroupVersionKind().Empty() {
		kinds, _, err := s.scheme.ObjectKinds(object)
		if err != nil {
			panic(err)
		}
		object = object.DeepCopyObject()
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(s.scheme, s.scheme).Encode(object, &out); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// event encodes one event of a watch, with the length before it.
func (s *server) event(kind string, object runtime.Object) []byte {
	event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: s.encode(object)}}
	message, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
