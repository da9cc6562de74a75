package controlplane_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// shipped is a configuration as manifests have it: for a Service.
const shipped = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: greeter}
webhooks:
- name: greeter.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig:
    service: {namespace: greeter, name: greeter, path: /mutate}
  namespaceSelector: {matchLabels: {greet: "true"}}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
`

func decodeWebhooks(t *testing.T) *registrationv1.MutatingWebhookConfiguration {
	t.Helper()
	objects, err := controlplane.Decode([]byte(shipped))
	require.NoError(t, err)
	require.Len(t, objects, 1)
	var config registrationv1.MutatingWebhookConfiguration
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &config))
	return &config
}

func TestRedirectChangesNothingElse(t *testing.T) {
	t.Parallel()
	before, after := decodeWebhooks(t), decodeWebhooks(t)
	require.NoError(t, controlplane.RedirectWebhooks(after, "127.0.0.1:443", []byte("ca")))
	url := "https://127.0.0.1:443/mutate"
	assert.Equal(t, registrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("ca")}, after.Webhooks[0].ClientConfig)
	after.Webhooks[0].ClientConfig = before.Webhooks[0].ClientConfig
	assert.Equal(t, before, after)

	after.Webhooks[0].ClientConfig = registrationv1.WebhookClientConfig{URL: &url}
	require.ErrorContains(t, controlplane.RedirectWebhooks(after, "127.0.0.1:443", nil), "names no Service")
}

const greetings = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Greeting, plural: greetings, singular: greeting}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
# nothing in this document
---
apiVersion: v1
kind: List
items:
- {apiVersion: example.org/v1, kind: Greeting, metadata: {name: one, namespace: default}, text: hello}
- {apiVersion: example.org/v1, kind: Greeting, metadata: {name: two, namespace: default}, text: hello}
`

func TestApply(t *testing.T) {
	t.Parallel()
	for range 2 {
		require.NoError(t, cp.Apply(t.Context(), greetings), "a definition and its objects in one go, and again")
	}
	greeting := &unstructured.Unstructured{}
	greeting.SetAPIVersion("example.org/v1")
	greeting.SetKind("Greeting")
	require.NoError(t, cp.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "two"}, greeting))
	assert.Equal(t, "hello", greeting.Object["text"])

	namespace := cp.Namespace(t)
	err := cp.Apply(t.Context(), configMap(namespace, "first"), "kind: [", configMap(namespace, "never"))
	require.ErrorContains(t, err, "decode a YAML document")
	require.NoError(t, cp.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "first"}, &corev1.ConfigMap{}))
	err = cp.Apply(t.Context(), configMap("no-such-namespace", "homeless"))
	require.ErrorContains(t, err, "apply ConfigMap no-such-namespace/homeless")
}
