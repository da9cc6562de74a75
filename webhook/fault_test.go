package webhook_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/webhook"
)

func TestMalformed(t *testing.T) {
	t.Parallel()
	valid := string(fixture(t, "create/request.yaml"))
	tests := map[string]struct {
		method, contentType, body string
		status                    int
		text                      string
		why                       string
	}{
		"get":              {method: http.MethodGet, status: 405, text: "POST", why: "somebody looks with a browser"},
		"no content type":  {contentType: "-", body: valid, status: 415, text: "application/json", why: "the API server sends one"},
		"form":             {contentType: "application/x-www-form-urlencoded", body: valid, status: 415, text: "application/json", why: "not from the API server"},
		"parameters":       {contentType: "application/json; charset=utf-8", body: valid, status: 200, why: "a legal way to write it"},
		"empty":            {body: "", status: 400, text: "empty", why: "no review"},
		"no JSON":          {body: "hello", status: 400, text: "no AdmissionReview", why: "no review"},
		"cut off":          {body: valid[:len(valid)/2], status: 400, text: "no AdmissionReview", why: "a connection that broke"},
		"list":             {body: "[]", status: 400, text: "no AdmissionReview", why: "no review"},
		"null":             {body: "null", status: 400, text: "no kind", why: "no review"},
		"wrong kind":       {body: `{"kind":"Pod","apiVersion":"v1"}`, status: 400, text: "v1/Pod", why: "no review"},
		"v1beta1":          {body: strings.Replace(valid, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), status: 400, text: "admissionReviewVersions", why: "the configuration must not ask for it"},
		"no request":       {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, status: 400, text: "no request", why: "nothing to decide"},
		"no uid":           {body: strings.Replace(valid, `"uid":"fixture"`, `"uid":""`, 1), status: 400, text: "no uid", why: "nobody to answer to"},
		"object missing":   {body: review(`"operation":"CREATE","object":null`), status: 400, text: "request.object is missing", why: "nothing to stamp"},
		"object no map":    {body: review(`"operation":"CREATE","object":["a"]`), status: 400, text: "request.object", why: "no workload"},
		"old missing":      {body: review(`"operation":"UPDATE","object":{}`), status: 400, text: "request.oldObject is missing", why: "an update of nothing"},
		"old no map":       {body: review(`"operation":"UPDATE","object":{},"oldObject":7`), status: 400, text: "request.oldObject", why: "no workload"},
		"too large":        {body: `{"a":"` + strings.Repeat("x", 8<<20) + `"}`, status: 413, text: "larger", why: "nobody may fill our memory"},
		"type of metadata": {body: review(`"operation":"CREATE","object":{"metadata":7,"spec":{"template":"x"}}`), status: 200, why: "the API server would not, and nothing breaks"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			r := httptest.NewRequest(orElse(tt.method, http.MethodPost), webhook.Path, strings.NewReader(tt.body))
			if tt.contentType != "-" {
				r.Header.Set("Content-Type", orElse(tt.contentType, "application/json"))
			}
			recorder := httptest.NewRecorder()
			s.handler.ServeHTTP(recorder, r)
			assert.Equal(t, tt.status, recorder.Code, tt.why)
			assert.Contains(t, recorder.Body.String(), tt.text)
			malformed := 1
			if tt.status == http.StatusOK {
				malformed = 0
			}
			assert.Equal(t, malformed, decisions(t, s, "none", "malformed"))
		})
	}
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

// TestTrouble shows that a write passes, whatever goes wrong; but for a digest that cannot be verified.
func TestTrouble(t *testing.T) {
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
			assert.Equal(t, int32(1), response.Result.Details.RetryAfterSeconds, "clients retry by themselves")
			assert.Contains(t, response.Result.Message, tt.text)
		})
	}
}

func TestPanicIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.crash = true
	var lines []string
	s := newHandler(t, w, nil, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	responseOf(t, post(s.handler, fixture(t, "create/request.yaml")))
	require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP pod_reloader_webhook_panics_total Admission requests that passed because their decision panicked; report each as a defect.
# TYPE pod_reloader_webhook_panics_total counter
pod_reloader_webhook_panics_total 1
`), "pod_reloader_webhook_panics_total"))
	assert.Contains(t, strings.Join(lines, "\n"), "handler_test.go", "the stack is in the log")
}

// TestDeadline shows that a third of the API server's own timeout is left for the answer.
func TestDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hang = true
	s := newHandler(t, w, nil, logr.Discard())
	r := httptest.NewRequest(http.MethodPost, webhook.Path+"?timeout=60ms", bytes.NewReader(fixture(t, "create/request.yaml")))
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, r)
	response := responseOf(t, recorder)
	assert.True(t, response.Allowed)
	assert.Contains(t, response.Warnings[0], "within 40ms")
}

func TestLog(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	s := newHandler(t, newWorld(t), nil, log)
	responseOf(t, post(s.handler, fixture(t, "scale/request.yaml")))
	assert.Empty(t, lines, "nothing was done, nothing to tell")
	responseOf(t, post(s.handler, fixture(t, "create/request.yaml")))
	require.Len(t, lines, 1, "one line a decision")
	for _, want := range []string{`"rule"="create"`, `"outcome"="stamped"`, `"name"="cart"`, `"namespace"="shop"`} {
		assert.Contains(t, lines[0], want)
	}
	assert.NotContains(t, lines[0], "image", "never an object")
}
