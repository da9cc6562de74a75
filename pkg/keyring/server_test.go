package keyring_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	namespace, name = "pod-reloader", "pod-reloader-digest-key"
	collection      = "/api/v1/namespaces/" + namespace + "/secrets"
)

// server speaks the part of the Kubernetes API that concerns one Secret. It is deterministic: a call
// returns when its effect is complete, and requests are counted.
type server struct {
	http *httptest.Server

	mu       sync.Mutex
	version  int
	secret   *corev1.Secret // as stored; nil when there is none
	watches  map[chan metav1.WatchEvent]bool
	requests map[string]int
	refuse   map[string]int // verb → HTTP status
	// denial is the message of a refusal; empty means that of the authorizers.
	denial string
	// created, if not nil, is called before a POST is carried out.
	created func()
	// answering, if not nil, is called before a GET is answered with what was stored when it came.
	answering func()
	// lagging means that the watches are behind: they get what is in late only when deliver is called.
	lagging bool
	late    []metav1.WatchEvent
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		version: 10, watches: map[chan metav1.WatchEvent]bool{}, requests: map[string]int{}, refuse: map[string]int{},
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

func (s *server) config() *rest.Config {
	return &rest.Config{Host: s.http.URL}
}

// put stores the Secret and sends it to the watches.
func (s *server) put(data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
}

func (s *server) putLocked(secret *corev1.Secret) {
	s.version++
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	secret.ResourceVersion = strconv.Itoa(s.version)
	kind := "MODIFIED"
	if s.secret == nil {
		kind, secret.UID = "ADDED", types.UID(secret.ResourceVersion)
	} else {
		secret.UID = s.secret.UID
	}
	s.secret = secret
	s.notifyLocked(kind, secret)
}

func (s *server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.secret.DeepCopy()
	s.secret = nil
	s.version++
	gone.ResourceVersion = strconv.Itoa(s.version) // that of the deletion, as with a real API server
	s.notifyLocked("DELETED", gone)
}

// restore is put at an earlier version, as after the restore of a backup of etcd.
func (s *server) restore(data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version -= 5
	s.putLocked(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
}

func (s *server) stored() *corev1.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

func (s *server) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[verb]
}

func (s *server) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches) > 0
}

func (s *server) refusing(status int, verbs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.refuse)
	for _, verb := range verbs {
		s.refuse[verb] = status
	}
}

func (s *server) notifyLocked(kind string, secret *corev1.Secret) {
	if s.lagging {
		s.late = append(s.late, event(kind, secret))
		return
	}
	for w := range s.watches {
		w <- event(kind, secret)
	}
}

// lag holds back what the watches get from now on.
func (s *server) lag() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagging = true
}

// deliver sends the watches the next events that were held back, all of them for 0.
func (s *server) deliver(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		n = len(s.late)
	}
	for _, e := range s.late[:n] {
		for w := range s.watches {
			w <- e
		}
	}
	s.late = s.late[n:]
}

func event(kind string, object any) metav1.WatchEvent {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw = raw
	return e
}

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	verb := strings.ToLower(r.Method)
	query := r.URL.Query()
	if r.URL.Path == collection && verb == "get" {
		verb = "list"
		if query.Get("watch") != "" {
			verb = "watch"
		}
		if query.Get("fieldSelector") != "metadata.name="+name {
			s.fail(w, http.StatusForbidden) // as RBAC with resourceNames
			return
		}
	}
	s.mu.Lock()
	s.requests[verb]++
	status, created := s.refuse[verb], s.created
	s.mu.Unlock()
	switch {
	case status != 0:
		s.fail(w, status)
	case verb == "watch":
		s.watch(w, r, query.Get("sendInitialEvents") == "true")
	case verb == "get" && r.URL.Path == collection+"/"+name:
		s.get(w)
	case verb == "post" && r.URL.Path == collection:
		if created != nil {
			created()
		}
		s.create(w, r)
	default:
		s.fail(w, http.StatusUnprocessableEntity)
	}
}

var resource = schema.GroupResource{Resource: "secrets"}

// fail refuses, as the server or a proxy before it can.
func (s *server) fail(w http.ResponseWriter, code int) {
	failure := apierrors.NewGenericServerResponse(code, "", resource, name, "", 0, true)
	if code == http.StatusForbidden {
		s.mu.Lock()
		failure.ErrStatus.Message = cmp.Or(s.denial, `secrets is forbidden: User "reloader" cannot do that`)
		s.mu.Unlock()
	}
	s.answer(w, failure)
}

func (s *server) answer(w http.ResponseWriter, failure *apierrors.StatusError) {
	failure.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.WriteHeader(int(failure.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(failure.ErrStatus)
}

func (s *server) get(w http.ResponseWriter) {
	s.mu.Lock()
	secret, answering := s.secret, s.answering
	s.mu.Unlock()
	if answering != nil {
		answering()
	}
	if secret != nil {
		_ = json.NewEncoder(w).Encode(secret)
		return
	}
	s.answer(w, apierrors.NewNotFound(resource, name))
}

func (s *server) create(w http.ResponseWriter, r *http.Request) {
	secret := &corev1.Secret{}
	if err := json.NewDecoder(r.Body).Decode(secret); err != nil {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	exists := s.secret != nil
	if !exists {
		s.putLocked(secret)
	}
	s.mu.Unlock()
	if exists {
		s.answer(w, apierrors.NewAlreadyExists(resource, name))
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(secret)
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	if !initial {
		s.fail(w, http.StatusGone) // what has passed is forgotten: list again
		return
	}
	events := make(chan metav1.WatchEvent, 100)
	s.mu.Lock()
	if s.secret != nil {
		events <- event("ADDED", s.secret)
	}
	events <- event("BOOKMARK", &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
	s.watches[events] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, events)
	}()
	for {
		select {
		case e := <-events:
			_ = json.NewEncoder(w).Encode(e)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}
