package edge_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// goodReview is what a real API server could send, of a Deployment with unknown members everywhere.
const goodReview = `{
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "future": 1,
  "request": {
    "uid": "1", "operation": "CREATE", "namespace": "NAMESPACE", "name": "web", "future": [1],
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "object": {
      "apiVersion": "apps/v1", "kind": "Deployment", "future": {"a": null},
      "metadata": {"name": "web", "annotations": {"pod-reloader.cs.sap.com/configmaps": "app"}, "future": true},
      "spec": {
        "future": 9007199254740993,
        "template": {
          "future": "x",
          "metadata": {"annotations": {"other": "1"}, "future": 1e400},
          "spec": {"future": [{"": ""}], "containers": [{"name": "c", "image": "i", "future": 0.1}]}
        }
      }
    }
  }
}`

// What is no admission review gets an answer that says why and that the API server takes for a failed call: a refusal with
// the uid of a request would reject the write. The process lives.
func TestMalformedReviews(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	review := strings.ReplaceAll(strings.ReplaceAll(goodReview, "NAMESPACE", s.Namespace), "1e400", "1e4")
	tests := map[string]string{
		"Empty":            "",
		"NoJSON":           "hello",
		"YAML":             "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nrequest: {uid: '1'}",
		"Null":             "null",
		"Array":            "[]",
		"EmptyObject":      "{}",
		"Truncated":        review[:len(review)/2],
		"OtherKind":        `{"apiVersion":"v1","kind":"ConfigMap"}`,
		"NoRequest":        `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"NoUID":            strings.Replace(review, `"uid": "1"`, `"uid": ""`, 1),
		"RequestIsAString": `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"x"}`,
		"NoObject":         strings.Replace(review, `"object":`, `"objekt":`, 1),
		"ObjectIsANumber":  `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","kind":{"group":"apps","version":"v1","kind":"Deployment"},"object":5}}`,
		"NoOldObject":      strings.Replace(review, "CREATE", "UPDATE", 1),
		"NumberTooLarge":   strings.ReplaceAll(goodReview, "NAMESPACE", s.Namespace),
		"DeepNesting":      strings.Repeat("[", 100_000),
		"DeepObject":       strings.Repeat(`{"a":`, 100_000),
	}
	replica := shared.Replicas()[1]
	pid := replica.PID()
	for name, body := range tests {
		code, text := s.Review(replica, []byte(body))
		require.Equal(t, http.StatusOK, code, "%s: %s", name, text)
		var answer admissionv1.AdmissionReview
		require.NoError(t, json.Unmarshal(text, &answer), "%s: %s", name, text)
		if answer.Response.Allowed {
			assert.NotEmpty(t, answer.Response.Warnings, "%s: the answer says what is wrong", name)
			assert.Empty(t, answer.Response.Patch, "%s: it changes nothing", name)
		} else {
			assert.NotEmpty(t, answer.Response.Result.Message, "%s: the answer says what is wrong", name)
			assert.Empty(t, answer.Response.UID, "%s: it rejects no write", name)
		}
	}
	code, text := s.Review(replica, []byte(review))
	assert.Equal(t, http.StatusOK, code, "a good one is answered after all these: %s", text)
	assert.Equal(t, pid, replica.PID(), "the process lives")
	metrics, err := replica.Metrics(t.Context())
	require.NoError(t, err)
	assert.Zero(t, metrics.Sum("pod_reloader_webhook_panics_total"), "nothing panicked")
	assert.GreaterOrEqual(t, metrics.Sum("pod_reloader_webhook_decisions_total", "outcome", "malformed"), float64(len(tests)), "each is counted")
}
