package conformance_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
)

// hook is a webhook that answers each request in the same way, or by what it finds in it.
type hook struct {
	name   string
	change func(*admissionregistrationv1.MutatingWebhook)
	answer func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse
	// status is an HTTP error that it answers with, instead.
	status int
}

// seen has what the webhooks of one side were sent.
type seen struct {
	mu       sync.Mutex
	requests []string
}

func (s *seen) add(t *testing.T, side *side, name string, r *admissionv1.AdmissionRequest) {
	t.Helper()
	r = r.DeepCopy()
	r.UID, r.UserInfo = "", authenticationv1.UserInfo{}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, name+" "+side.comparable(t, step{}, text))
}

func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

// config returns the configuration of a webhook for Deployments in the namespaces of the test.
func (h hook) config(namespace string) admissionregistrationv1.MutatingWebhook {
	fail, none, seconds := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, int32(20)
	w := admissionregistrationv1.MutatingWebhook{
		Name: h.name + ".example.com", FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "deployments/status"}},
		}},
	}
	if h.change != nil {
		h.change(&w)
	}
	return w
}

// respond returns the review that answers another.
func (h hook) respond(review *admissionv1.AdmissionReview) *admissionv1.AdmissionReview {
	response := h.answer(review.Request)
	response.UID = review.Request.UID
	if len(response.Patch) > 0 {
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType = &kind
	}
	return &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &response}
}

// register makes both sides call the webhooks, and returns what they are sent.
func register(t *testing.T, sides [2]*side, model *apiserver.Server, hooks []hook) [2]*seen {
	t.Helper()
	all := [2]*seen{{}, {}}
	var inModel []apiserver.Webhook
	for _, h := range hooks {
		inModel = append(inModel, apiserver.Webhook{
			Config: h.config("model"),
			Call: func(_ context.Context, r *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
				all[0].add(t, sides[0], h.name, r.Request)
				if h.status != 0 {
					return nil, fmt.Errorf("the server responded with %d", h.status)
				}
				return h.respond(r), nil
			},
		})
	}
	require.NoError(t, model.SetWebhooks(inModel))
	url, ca := listen(t, sides[1], hooks, all[1])
	config := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: sides[1].namespace}}
	for _, h := range hooks {
		w := h.config(sides[1].namespace)
		at := url + "/" + h.name
		w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &at, CABundle: ca}
		config.Webhooks = append(config.Webhooks, w)
	}
	require.NoError(t, cluster.Client().Create(t.Context(), config))
	t.Cleanup(func() {
		require.NoError(t, cluster.Client().Delete(context.WithoutCancel(t.Context()), config))
	})
	// The API server learns of it after a while.
	probe := post(deployments+"?dryRun=All", strings.Replace(workload("Deployment", selector), `"name":"w"`, `"name":"probe"`, 1))
	require.Eventually(t, func() bool {
		sides[1].do(t, probe)
		return len(all[1].take()) > 0
	}, patience, 100*time.Millisecond)
	sides[0].do(t, probe)
	all[0].take()
	for _, s := range sides {
		clear(s.names)
	}
	return all
}

// listen serves the webhooks over HTTPS.
func listen(t *testing.T, side *side, hooks []hook, all *seen) (url string, ca []byte) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, cluster.ServingCert(dir, "webhook"))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, h := range hooks {
		mux.HandleFunc("/"+h.name, func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&review)) {
				return
			}
			all.add(t, side, h.name, review.Request)
			if h.status != 0 {
				http.Error(w, "no", h.status)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			assert.NoError(t, json.NewEncoder(w).Encode(h.respond(&review)))
		})
	}
	s := httptest.NewUnstartedServer(mux)
	s.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, cluster.CA()
}

func patching(patch string) func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
	return func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		if len(r.Object.Raw) == 0 {
			return admissionv1.AdmissionResponse{Allowed: true}
		}
		return admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch)}
	}
}

func ifNeeded(w *admissionregistrationv1.MutatingWebhook) {
	policy := admissionregistrationv1.IfNeededReinvocationPolicy
	w.ReinvocationPolicy = &policy
}

func ignoring(w *admissionregistrationv1.MutatingWebhook) {
	policy := admissionregistrationv1.Ignore
	w.FailurePolicy = &policy
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	allow := func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		return admissionv1.AdmissionResponse{Allowed: true}
	}
	reject := func(status *metav1.Status) func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		return func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			if r.Name == "probe" || !strings.Contains(string(r.Object.Raw), "reject") {
				return admissionv1.AdmissionResponse{Allowed: true}
			}
			return admissionv1.AdmissionResponse{Result: status}
		}
	}
	sidecar := patching(`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"side","image":"side:1"}}]`)
	once := func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		if strings.Contains(string(r.Object.Raw), `"side:1"`) {
			return admissionv1.AdmissionResponse{Allowed: true}
		}
		return sidecar(r)
	}
	for name, hooks := range map[string][]hook{
		"seeing":    {{name: "a", answer: allow}},
		"changing":  {{name: "a", answer: patching(`[{"op":"add","path":"/metadata/annotations/hook","value":"1"},{"op":"remove","path":"/spec/revisionHistoryLimit"}]`)}},
		"reinvoked": {{name: "a", answer: allow, change: ifNeeded}, {name: "b", answer: once}, {name: "c", answer: allow, change: ifNeeded}},
		"both":      {{name: "a", answer: patching(`[{"op":"add","path":"/metadata/annotations/a","value":"1"}]`), change: ifNeeded}, {name: "b", answer: once, change: ifNeeded}},
		"conflict":  {{name: "a", answer: reject(&metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: "moved on"})}},
		"no reason": {{name: "a", answer: reject(nil)}},
		"ignored":   {{name: "a", answer: allow, status: 500, change: ignoring}},
		"undecodable": {{name: "a", answer: func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			if r.Name == "probe" || len(r.Object.Raw) == 0 {
				return admissionv1.AdmissionResponse{Allowed: true}
			}
			return admissionv1.AdmissionResponse{Allowed: true, Patch: []byte("{")}
		}}},
		"selected": {{name: "a", answer: allow, change: func(w *admissionregistrationv1.MutatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "l", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}}}
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: `request.operation != "DELETE" && object.metadata.?annotations.?a.orValue("") == "1"`}}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admit(t, hooks, writes())
		})
	}
}

// writes are those of a Deployment.
func writes() []step {
	w := deployments + "/w"
	rejected := strings.Replace(workload("Deployment", selector), `"a":"1"`, `"a":"reject"`, 1)
	return []step{
		post(deployments, rejected), post(deployments, workload("Deployment", selector)), patch(w, merge, `{"spec":{"replicas":2}}`), patch(w, merge, `{}`),
		put(w, workload("Deployment", selector)), patch(w, merge, `{"metadata":{"labels":{"l":"2"}}}`), patch(w, merge, `{"metadata":{"labels":{"l":"3"}}}`),
		patch(w+"/status", merge, `{"status":{"replicas":1,"updatedReplicas":1}}`), patch(w, merge, `{"metadata":{"annotations":{"a":"reject"}}}`),
		put(w, strings.Replace(workload("Deployment", selector), `"name":"w"`, `"name":"w","resourceVersion":"1"`, 1)),
		patch(w+"?dryRun=All", operation, `[{"op":"add","path":"/metadata/annotations/x","value":"y"}]`), remove(w),
	}
}

// admit plays steps through webhooks, and compares what these see, too.
func admit(t *testing.T, hooks []hook, steps []step) {
	t.Helper()
	sides, model := servers(t)
	all := register(t, sides, model, hooks)
	for n, s := range steps {
		// The API server begins an update with the object in its cache, and calls the webhooks again where that was old. A
		// consistent list waits until the cache has all that is stored.
		sides[1].do(t, get(deployments))
		compare(t, sides, n, s)
		assert.Equal(t, strings.Join(all[1].take(), "\n"), strings.Join(all[0].take(), "\n"), "what the webhooks see at step %d: %s %s", n, s.method, s.path)
	}
}
