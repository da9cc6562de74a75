package comparison_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// interval is how often a condition is looked at that nobody announces.
const interval = 50 * time.Millisecond

// futurePodSpec has fields that no library knows, beside some that all know.
const futurePodSpec = `{
  "futureOfThePod": {"deep": [1, 2.5, 9007199254740993, null, "\u00e4"], "empty": {}},
  "containers": [{
    "name": "main", "image": "example.com/app:1",
    "futureOfTheContainer": [{"a~b/c": true}],
    "envFrom": [{"configMapRef": {"name": "app", "futureOfTheReference": 1}}]
  }]
}`

// future is a workload of any kind with such a pod spec.
func future(t *testing.T, apiVersion, kind, namespace string) map[string]any {
	t.Helper()
	var podSpec map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(futurePodSpec)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&podSpec))
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"name": "future", "namespace": namespace,
			"annotations": map[string]any{fixture.ConfigMaps: "app"},
		},
		"spec": map[string]any{
			"futureOfTheSpec": map[string]any{"mode": "Gentle"},
			"selector":        map[string]any{"matchLabels": map[string]any{"app": "future"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "future"}},
				"spec":     podSpec,
			},
		},
	}
}

// SAP's webhook decodes the workload into the type of its library, and computes its patch from what that type gives back:
// fields that are newer than the library are removed from the user's workload. Here a Deployment with such fields goes to
// the webhook as an API server of the future would send it.
func TestFieldsNewerThanTheLibrarySurviveTheWebhook(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	created := future(t, "apps/v1", "Deployment", s.Namespace)
	changed := future(t, "apps/v1", "Deployment", s.Namespace)
	changed["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["alsoOfTheFuture"] = "another"

	tests := map[string]struct {
		operation   string
		object, old map[string]any
	}{
		"Create": {"CREATE", created, nil},
		"Update": {"UPDATE", changed, created},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sent, err := json.Marshal(test.object)
			require.NoError(t, err)
			patch := review(t, s, test.operation, test.object, test.old)
			operations, err := jsonpatch.DecodePatch(patch)
			require.NoError(t, err)
			got, err := operations.Apply(sent)
			require.NoError(t, err)
			assert.Contains(t, string(patch), "config-record", "the workload is stamped, or adopted where it never was")
			assert.Contains(t, string(got), "9007199254740993", "a number that a float cannot hold is kept")
			assert.JSONEq(t, string(sent), string(withoutMarks(t, got)), "but for our annotations the workload is as it was sent")
		})
	}
}

// withoutMarks takes from a workload what the webhook may have added.
func withoutMarks(t *testing.T, object []byte) []byte {
	t.Helper()
	u := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&u))
	annotations, _, _ := unstructured.NestedFieldNoCopy(u, "metadata", "annotations")
	delete(annotations.(map[string]any), fixture.LastReload)
	delete(annotations.(map[string]any), fixture.ConfigRecord)
	onTemplate, _, _ := unstructured.NestedFieldNoCopy(u, "spec", "template", "metadata", "annotations")
	marks, _ := onTemplate.(map[string]any)
	delete(marks, fixture.ConfigHash)
	if len(marks) == 0 {
		unstructured.RemoveNestedField(u, "spec", "template", "metadata", "annotations")
	}
	text, err := json.Marshal(u)
	require.NoError(t, err)
	return text
}

// review sends a write of a Deployment to a replica's webhook and returns the patch of its answer.
func review(t *testing.T, s *fixture.Fixture, operation string, object, old map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "1", "operation": operation, "namespace": s.Namespace, "name": "future",
			"kind":     map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"},
			"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
			"object":   object, "oldObject": old,
		},
	})
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(shared.ControlPlane().CA()))
	https := &http.Client{Timeout: fixture.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: serviceName, MinVersion: tls.VersionTLS13,
	}}}
	defer https.CloseIdleConnections()
	text := post(t, https, body)
	var answer struct {
		Response struct {
			Allowed bool
			Patch   []byte
		}
	}
	require.NoError(t, json.Unmarshal(text, &answer), string(text))
	require.True(t, answer.Response.Allowed, string(text))
	return answer.Response.Patch
}

// post returns the answer of a replica's webhook. It asks again where the machine was so slow that the webhook may have
// given up reading.
func post(t *testing.T, https *http.Client, body []byte) (answer []byte) {
	t.Helper()
	for range 5 {
		began := time.Now()
		response, err := https.Post("https://"+shared.Replicas()[0].WebhookAddress+"/mutate", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		answer, err = io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if time.Since(began) < fixture.Prompt {
			break
		}
	}
	return answer
}

// fleet is a kind named on the command line of the shared installation.
var fleet = fixture.Fleet{Group: "peer.example.com", Template: "spec.template"}

// The same on the way through a real API server: a kind of workload that keeps fields nobody knows, created, reloaded by
// the loop and released.
func TestFieldsNewerThanTheLibrarySurviveOnTheServer(t *testing.T) {
	t.Parallel()
	fleet.Define(t, shared)
	s := fleet.Fixture(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "future"}
	manifest, err := json.Marshal(future(t, "peer.example.com/v1", "Fleet", s.Namespace))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(manifest))

	fleet.Serve(s, object)
	s.CreatePromptly(object)
	same := func(why string) {
		t.Helper()
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(fleet.Kind())
		require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(object), stored))
		text, err := json.Marshal(map[string]any{
			"apiVersion": "peer.example.com/v1", "kind": "Fleet", "spec": stored.Object["spec"],
			"metadata": map[string]any{"name": "future", "namespace": s.Namespace, "annotations": stored.GetAnnotations()},
		})
		require.NoError(t, err)
		assert.JSONEq(t, string(manifest), string(withoutMarks(t, text)), why)
	}
	same("created and stamped, it lost or changed a field")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the content of configmap/app has changed")
	same("reloaded, it lost or changed a field")
	s.Settled()
	s.RequireChanges(w, 1, "one change is one restart")
}
