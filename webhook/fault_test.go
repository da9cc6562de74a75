package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// What is no review is answered so that the API server takes it for a failed call: an answer that is no permission has no
// uid. What is a review of nothing that makes sense passes with a warning.
func TestMalformed(t *testing.T) {
	t.Parallel()
	valid := string(fixture(t, "create/request.yaml"))
	const elsewhere = `{"metadata":{"namespace":"kube-system","annotations":{"pod-reloader.cs.sap.com/configmaps":"app"}},"spec":{"template":{}}}`
	tests := map[string]struct {
		method, contentType, body string
		code                      int32
		text                      string
		why                       string
	}{
		"get":              {method: http.MethodGet, code: 400, text: "not a JSON object", why: "a browser sends no body"},
		"no content type":  {contentType: "-", body: valid, code: 400, text: "application/json", why: "the API server sends one"},
		"form":             {contentType: "application/x-www-form-urlencoded", body: valid, code: 400, text: "application/json", why: "not from the API server"},
		"empty":            {body: "", code: 400, text: "not a JSON object", why: "no review"},
		"no JSON":          {body: "hello", code: 400, text: "not a JSON object", why: "no review"},
		"YAML":             {body: "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview", code: 400, text: "not a JSON object", why: "the API server sends JSON, and YAML takes too much memory"},
		"Protobuf":         {body: "k8s\x00abc", code: 400, text: "not a JSON object", why: "the API server sends JSON"},
		"cut off":          {body: valid[:len(valid)/2], code: 400, text: "unexpected end", why: "a connection that broke"},
		"list":             {body: "[]", code: 400, text: "not a JSON object", why: "no review"},
		"null":             {body: "null", code: 400, text: "not a JSON object", why: "no review"},
		"wrong kind":       {body: `{"kind":"Pod","apiVersion":"v1"}`, code: 200, text: "no request with a uid", why: "no review"},
		"no request":       {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, code: 200, text: "no request with a uid", why: "nothing to decide"},
		"request is null":  {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, code: 200, text: "no request with a uid", why: "nothing to decide"},
		"request no map":   {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":"x"}`, code: 400, text: "cannot unmarshal", why: "nothing to decide"},
		"no uid":           {body: strings.Replace(valid, `"uid":"fixture"`, `"uid":""`, 1), code: 200, text: "no request with a uid", why: "the API server does not take the answer"},
		"long namespace":   {body: inNamespace(valid, strings.Repeat("a", 1<<20)), code: 200, text: "is not the name of a namespace", why: "each read has it in its path"},
		"path in it":       {body: inNamespace(valid, "shop/secrets"), code: 200, text: `request.namespace "shop/secrets" is not`, why: "it is a part of a path"},
		"object missing":   {body: review(`"operation":"CREATE","object":null`), code: 200, text: "request.object is missing", why: "nothing to stamp"},
		"object no map":    {body: review(`"operation":"CREATE","object":["a"]`), code: 200, text: "request.object", why: "no workload"},
		"old missing":      {body: review(`"operation":"UPDATE","object":{}`), code: 200, text: "request.oldObject is missing", why: "an update of nothing"},
		"old no map":       {body: review(`"operation":"UPDATE","object":{},"oldObject":7`), code: 200, text: "request.oldObject", why: "no workload"},
		"other namespace":  {body: review(`"operation":"CREATE","object":` + elsewhere), code: 200, text: "request.object has the namespace \"kube-system\"", why: "its names would be those of a namespace that may be out of scope"},
		"old one of other": {body: review(`"operation":"UPDATE","object":{},"oldObject":` + elsewhere), code: 200, text: "request.oldObject has the namespace", why: "likewise"},
		"too large":        {body: `{"a":"` + strings.Repeat("x", 8<<20) + `"}`, code: 413, text: "too large", why: "no caller may fill the memory"},
		"type of metadata": {body: review(`"operation":"CREATE","object":{"metadata":7,"spec":{"template":"x"}}`), code: 200, why: "the API server would not, and nothing breaks"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newHandler(t, w, nil, logr.Discard())
			r := httptest.NewRequest(orElse(tt.method, http.MethodPost), webhook.Path, strings.NewReader(tt.body))
			if tt.contentType != "-" {
				r.Header.Set("Content-Type", orElse(tt.contentType, "application/json"))
			}
			recorder := httptest.NewRecorder()
			s.handler.ServeHTTP(recorder, r)
			response := answerOf(t, recorder)
			assert.Equal(t, tt.code, response.Result.Code, tt.why)
			assert.Equal(t, tt.code == http.StatusOK, response.Allowed)
			assert.Contains(t, strings.Join(response.Warnings, "\n")+response.Result.Message, tt.text)
			if !response.Allowed {
				assert.Empty(t, response.UID, "a refusal with a uid would reject the write")
			}
			assert.Zero(t, w.reads.Load(), "nothing is read for it")
			malformed := 1
			if tt.text == "" {
				malformed = 0
			}
			assert.Equal(t, malformed, decisions(t, s, "none", "malformed"))
		})
	}
}

// An API server that asks in the old version of the API gets its answer in it.
func TestReviewOfV1beta1IsAnswered(t *testing.T) {
	t.Parallel()
	s := newHandler(t, newWorld(t), nil, logr.Discard())
	old := strings.Replace(string(fixture(t, "create/request.yaml")), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)
	body := post(s.handler, []byte(old)).Body.String()
	assert.Contains(t, body, `"apiVersion":"admission.k8s.io/v1beta1"`)
	assert.Contains(t, body, `"patchType":"JSONPatch"`)
	assert.Equal(t, 1, decisions(t, s, "create", "stamped"))
}

// inNamespace returns a review with another namespace than shop.
func inNamespace(review, namespace string) string {
	return strings.Replace(review, `"namespace":"shop"`, `"namespace":"`+namespace+`"`, 1)
}

// review returns a review of a Deployment with the given fields of the request.
func review(fields string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",` +
		`"kind":{"group":"apps","version":"v1","kind":"Deployment"},"namespace":"shop","name":"cart",` + fields + `}}`
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Only a digest that cannot be verified is rejected.
func TestWritePassesWhenTheDecisionFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		world         func(*world)
		request       string
		allowed       bool
		text          string
		rule, outcome string
	}{
		"read fails on create":   {func(w *world) { w.fail = errors.New("no route") }, "create", true, "no route", "create", "unread"},
		"read fails on release":  {func(w *world) { w.fail = errors.New("no route") }, "release", true, "no route", "template-changed", "unread"},
		"read fails on a dummy":  {func(w *world) { w.fail = errors.New("no route") }, "dummy-mismatch", false, "no route", "verified-reload", "unverified"},
		"read hangs":             {func(w *world) { w.hang = true }, "create", true, "did not answer within 50ms", "create", "unread"},
		"no digest key":          {func(w *world) { w.ring = digest.Ring{} }, "create", true, "no digest key", "create", "unread"},
		"no digest key, a dummy": {func(w *world) { w.ring = digest.Ring{} }, "dummy-mismatch", false, "no digest key", "verified-reload", "unverified"},
		"panic":                  {func(w *world) { w.crash = true }, "create", true, "failed and passed this write unchanged", "none", "panicked"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				tt.world(w)
				s := newHandler(t, w, func(o *webhook.Options) { o.Deadline = 50 * time.Millisecond }, logr.Discard())
				response := responseOf(t, post(s.handler, fixture(t, tt.request+"/request.yaml")))
				assert.Equal(t, tt.allowed, response.Allowed)
				assert.Equal(t, 1, decisions(t, s, tt.rule, tt.outcome))
				if tt.allowed {
					assert.Contains(t, strings.Join(response.Warnings, "\n"), tt.text)
					assert.NotContains(t, string(response.Patch), "config-hash", "no stamp without the state")
					return
				}
				assert.Equal(t, int32(http.StatusServiceUnavailable), response.Result.Code)
				assert.Equal(t, metav1.StatusReasonServiceUnavailable, response.Result.Reason)
				assert.Equal(t, []metav1.StatusCause{{Type: "DigestUnverifiable"}}, response.Result.Details.Causes, "no other 503 has it")
				assert.Equal(t, int32(1), response.Result.Details.RetryAfterSeconds, "clients retry by themselves")
				assert.Contains(t, response.Result.Message, tt.text)
			})
		})
	}
}

func TestPanicIsCounted(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		set  func(w *world)
		file string
	}{
		"of a decision": {func(w *world) { w.crash = true }, "handler_test.go"},
		"of a read in a goroutine of its own": {func(w *world) {
			w.fail = recovering.Func(func() error { panic("boom") })()
		}, "fault_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			fault.set(w)
			log, lines := logtest.New()
			s := newHandler(t, w, nil, log)
			responseOf(t, post(s.handler, fixture(t, "create/request.yaml")))
			require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP pod_reloader_webhook_panics_total Admission requests whose decision, or read of ConfigMaps and Secrets, panicked; report each as a defect.
# TYPE pod_reloader_webhook_panics_total counter
pod_reloader_webhook_panics_total 1
`), "pod_reloader_webhook_panics_total"))
			assert.Contains(t, lines.String(), fault.file, "the stack is in the log")
		})
	}
}

// TestDeadline shows that a third of the API server's own timeout is left for the answer.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hang = true
		s := newHandler(t, w, nil, logr.Discard())
		r := httptest.NewRequest(http.MethodPost, webhook.Path+"?timeout=60ms", bytes.NewReader(fixture(t, "create/request.yaml")))
		response := responseOf(t, sendRequest(s.handler, "192.0.2.1", r))
		assert.True(t, response.Allowed, "a write passes when its deadline is over")
		assert.Contains(t, response.Warnings[0], "within 40ms")
	})
}

// A Server of controller-runtime ends the contexts of all requests when it stops.
func TestRequestInFlightIsDecidedWhenItsServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	w.before = func(context.Context, string) { stop() }
	s := newHandler(t, w, nil, logr.Discard())
	r := httptest.NewRequest(http.MethodPost, webhook.Path, bytes.NewReader(fixture(t, "create/request.yaml"))).WithContext(ctx)
	assert.Contains(t, string(responseOf(t, sendRequest(s.handler, "192.0.2.1", r)).Patch), "config-hash")
	assert.Equal(t, 1, decisions(t, s, "create", "stamped"))
}

// The Handler is an admission.Handler that can be called without its HTTP server.
func TestHandleByItself(t *testing.T) {
	t.Parallel()
	s := newHandler(t, newWorld(t), nil, logr.Discard())
	var sent admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(fixture(t, "create/request.yaml"), &sent))
	response := s.handler.Handle(t.Context(), admission.Request{AdmissionRequest: *sent.Request})
	assert.True(t, response.Allowed, "the creation is valid")
	assert.NotEmpty(t, response.Patches)
}
