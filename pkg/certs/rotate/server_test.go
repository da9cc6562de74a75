package rotate_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	namespace, secretName, configuration = "pod-reloader", "pod-reloader-certificates", "pod-reloader"
	collection                           = "/api/v1/namespaces/" + namespace + "/secrets"
	registrations                        = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
)

// server speaks the part of the Kubernetes API that concerns one Secret and one webhook configuration, with optimistic
// concurrency. Watches are refused, so that only turns by time are tested; the e2e tests have an API server.
type server struct {
	http *httptest.Server

	mu           sync.Mutex
	version      int
	secret       *corev1.Secret
	registration *admissionv1.MutatingWebhookConfiguration
	// refuse has the methods that are forbidden, requests counts them.
	refuse   map[string]bool
	requests map[string]int
	// ahead is by how much the clock of the server is ahead.
	ahead time.Duration
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := newHandler()
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// newHandler is a server without a network, which RoundTrip asks.
func newHandler() *server {
	return &server{refuse: map[string]bool{}, requests: map[string]int{}, registration: &admissionv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: configuration, ResourceVersion: "1"},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "a"}, {Name: "b"}},
	}}
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

func (s *server) config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// do changes the server under its lock.
func (s *server) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	s.requests[r.Method]++
	switch {
	case s.refuse[r.Method], r.URL.Path == collection && r.Method == http.MethodGet, r.URL.Path == registrations:
		status(w, http.StatusForbidden, metav1.StatusReasonForbidden, "")
	case strings.HasPrefix(r.URL.Path, collection):
		s.serveSecret(w, r)
	default:
		s.serveRegistration(w, r)
	}
}

func (s *server) serveSecret(w http.ResponseWriter, r *http.Request) {
	sent := &corev1.Secret{}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(sent)
	}
	switch {
	case r.Method == http.MethodPost && s.secret != nil:
		status(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "")
		return
	case r.Method != http.MethodPost && s.secret == nil:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "")
		return
	case r.Method == http.MethodPut && sent.ResourceVersion != s.secret.ResourceVersion:
		status(w, http.StatusConflict, metav1.StatusReasonConflict, "")
		return
	case r.Method != http.MethodGet:
		s.version++
		sent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		sent.ResourceVersion = strconv.Itoa(s.version)
		s.secret = sent
	}
	_ = json.NewEncoder(w).Encode(s.secret)
}

func (s *server) serveRegistration(w http.ResponseWriter, r *http.Request) {
	if s.registration == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "")
		return
	}
	if r.Method == http.MethodPatch {
		var operations []struct {
			Path  string `json:"path"`
			Value any    `json:"value"`
		}
		_ = json.NewDecoder(r.Body).Decode(&operations)
		if operations[0].Value != s.registration.ResourceVersion {
			status(w, http.StatusConflict, metav1.StatusReasonConflict, "")
			return
		}
		for i, o := range operations[1:] {
			encoded, _ := json.Marshal(o.Value)
			_ = json.Unmarshal(encoded, &s.registration.Webhooks[i].ClientConfig.CABundle)
		}
		s.version++
		s.registration.ResourceVersion = strconv.Itoa(s.version)
	}
	_ = json.NewEncoder(w).Encode(s.registration)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: cmp.Or(message, string(reason)),
	})
}
