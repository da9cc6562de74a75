package promise_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A kind that is not compiled in, with a pod template full of fields that no library knows. SAP's webhook decodes a workload
// into the type of its library and computes its patch from what that type gives back: fields newer than the library are
// removed from the user's workload.
func TestP5UnknownFieldsOfAnUnknownKindSurviveEveryReload(t *testing.T) {
	t.Parallel()
	cp, in := shared.ControlPlane(), shared
	definition, err := os.ReadFile("testdata/gadget-definition.yaml")
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), string(definition)))
	webhook := &unstructured.Unstructured{}
	webhook.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
	gadgets := observe.Kind{
		Name: "Gadget", Template: "spec.template",
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"},
	}
	s := fixture.New(t, in)
	s.JSONPatch(webhook, in.WebhookConfiguration(), `[{"op":"add","path":"/webhooks/0/rules/-","value":
		{"apiGroups":["example.com"],"apiVersions":["v1"],"resources":["gadgets"],"operations":["CREATE","UPDATE"]}}]`)
	watcher := observe.New(t, cp.Admin(), s.Namespace, gadgets)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	manifest, err := os.ReadFile("testdata/gadget.yaml")
	require.NoError(t, err)
	manifest = bytes.ReplaceAll(manifest, []byte("SPACE"), []byte(s.Namespace))
	written, err := controlplane.Decode(manifest)
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), string(manifest)))
	w := observe.Workload{Kind: "Gadget", Namespace: s.Namespace, Name: "odd"}
	require.NoError(t, watcher.Await(s.Patiently(), "the gadget to be known", func() error {
		if o := watcher.Object(w); o == nil || o.GetAnnotations()[fixture.ConfigRecord] == "" {
			return assert.AnError
		}
		return nil
	}))
	before := withoutOurAnnotations(watcher.Object(w))
	assert.Equal(t, written[0].Object["spec"], before["spec"], "as it was written")
	for n := 1; n <= 5; n++ {
		s.SetConfigMap("app", "key", strings.Repeat("x", n))
		_, err := watcher.AwaitTemplateChanges(s.Patiently(), w, n)
		require.NoError(t, err)
		assert.Equal(t, before, withoutOurAnnotations(watcher.Object(w)), "reload %d changed what is not ours", n)
	}
	s.Settled()
	require.NoError(t, watcher.Sync(s.Patiently()))
	assert.Len(t, watcher.Changes(w), 5, "one change is one restart")
}

// withoutOurAnnotations is what a user has written of an object.
func withoutOurAnnotations(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, key := range []string{fixture.ConfigHash, fixture.ConfigRestart, fixture.ConfigRecord, fixture.LastReload} {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", key)
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations", key)
	}
	if len(fixture.TemplateAnnotations(object)) == 0 {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object.Object
}

// A Deployment of a future Kubernetes, with fields and numbers that ours cannot know, sent to the webhook as raw JSON.
func TestP5PatchOfARawObjectTouchesOurAnnotationsOnly(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	raw, err := os.ReadFile("testdata/future-deployment.json")
	require.NoError(t, err)
	object := bytes.ReplaceAll(raw, []byte("SPACE"), []byte(s.Namespace))
	changed := bytes.ReplaceAll(object, []byte("app:1"), []byte("app:2"))
	bare := bytes.ReplaceAll(object, []byte(`"annotations": {"example.com/a~b": "kept"}`), []byte(`"annotations": null`))

	tests := map[string]struct {
		operation    string
		before, sent []byte
	}{
		"Create":                       {operation: "CREATE", sent: object},
		"CreateWithNullAnnotations":    {operation: "CREATE", sent: bare},
		"UpdateOfTheTemplate":          {operation: "UPDATE", before: object, sent: changed},
		"FirstSight":                   {operation: "UPDATE", before: object, sent: object},
		"UpdateWithoutOldAnnotations":  {operation: "UPDATE", before: bare, sent: changed},
		"UpdateThatDropsAnnotationMap": {operation: "UPDATE", before: object, sent: bare},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			review, err := json.Marshal(map[string]any{
				"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
				"request": map[string]any{
					"uid": "u", "operation": test.operation, "namespace": s.Namespace, "name": "future",
					"kind":     map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"},
					"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
					"object":   json.RawMessage(test.sent), "oldObject": oldObject(test.before),
				},
			})
			require.NoError(t, err)
			code, text := s.Review(shared.Replicas()[0], review)
			require.Equal(t, http.StatusOK, code, string(text))
			var answer admissionv1.AdmissionReview
			require.NoError(t, json.Unmarshal(text, &answer))
			response := answer.Response
			require.True(t, response.Allowed, "%v", response.Result)
			require.NotEmpty(t, response.Patch, "there is something to stamp")
			assert.Contains(t, string(response.Patch), "config-record", "the workload is stamped, or adopted")
			for _, operation := range operations(t, response.Patch) {
				assert.Regexp(t, `^/(metadata|spec/template/metadata)/annotations(/pod-reloader\.cs\.sap\.com~1[a-z-]+)?$`, operation.Path)
				assert.Contains(t, []string{"add", "replace", "remove"}, operation.Op)
			}
			patch, err := jsonpatch.DecodePatch(response.Patch)
			require.NoError(t, err)
			patched, err := patch.Apply(test.sent)
			require.NoError(t, err, "the patch fits the object as it was sent")
			assert.Equal(t, stripped(t, test.sent), stripped(t, patched), "everything else is as it was, every digit")
			var stored unstructured.Unstructured
			require.NoError(t, stored.UnmarshalJSON(patched))
			for key := range fixture.TemplateAnnotations(&stored) {
				assert.Contains(t, []string{fixture.ConfigHash, "example.com/a~b"}, key, "the template carries one thing of ours")
			}
		})
	}
}

func oldObject(raw []byte) any {
	if raw == nil {
		return nil
	}
	return json.RawMessage(raw)
}

type operation struct{ Op, Path string }

func operations(t *testing.T, patch []byte) []operation {
	t.Helper()
	var all []operation
	require.NoError(t, json.Unmarshal(patch, &all))
	return all
}

// stripped is an object without our annotations, its numbers as they are written; empty maps of annotations equal none.
func stripped(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	require.NoError(t, decoder.Decode(&object))
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		metadata := object
		for _, field := range path {
			metadata, _ = metadata[field].(map[string]any)
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		for key := range annotations {
			if strings.HasPrefix(key, "pod-reloader.cs.sap.com/") && key != fixture.ConfigMaps {
				delete(annotations, key)
			}
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return object
}
