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

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// gadgets are a kind that is not compiled in.
var gadgets = fixture.Fleet{Group: "gadgets.example.com", Template: "spec.template"}

// The pod template is full of fields that no library knows. SAP's webhook decodes a workload into the type of its library and
// computes its patch from what that type gives back: fields newer than the library are removed from the user's workload.
func TestP5UnknownFieldsOfAnUnknownKindSurviveEveryReload(t *testing.T) {
	t.Parallel()
	gadgets.Define(t, shared)
	s := gadgets.Fixture(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	manifest, err := os.ReadFile("testdata/gadget.yaml")
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.ReplaceAll(manifest, []byte("SPACE"), []byte(s.Namespace)))
	require.NoError(t, err)
	require.Len(t, objects, 1)
	gadgets.Serve(s, objects[0])
	require.NoError(t, s.Create(t.Context(), objects[0].DeepCopy()))
	w := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "odd"}
	s.Await("the Record", func() error {
		if o := s.Watcher.Object(w); o == nil || o.GetAnnotations()[fixture.ConfigRecord] == "" {
			return assert.AnError
		}
		return nil
	})
	stored := func() map[string]any {
		text, err := s.Watcher.Object(w).MarshalJSON()
		require.NoError(t, err)
		return stripped(t, text)
	}
	before := stored()
	written, err := objects[0].MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, stripped(t, written)["spec"], before["spec"], "as it was written")
	for n := 1; n <= 5; n++ {
		s.SetConfigMap("app", "key", strings.Repeat("x", n))
		s.AwaitChanges(w, n, "one change is one restart")
		assert.Equal(t, before, stored(), "reload %d changed what is not ours", n)
	}
	s.Settled()
	s.RequireChanges(w, 5, "one change is one restart")
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

// stripped is what a user has written of an object: without our annotations and what the API server counts, its numbers as
// they are written. An empty map of annotations equals none.
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
		for _, key := range []string{fixture.ConfigHash, fixture.ConfigRestart, fixture.ConfigRecord, fixture.LastReload} {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	return object
}
