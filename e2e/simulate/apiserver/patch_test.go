package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
)

func TestPatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind    types.PatchType
		body    string
		code    int
		reason  metav1.StatusReason
		message string
		path    []string
		want    any
	}{
		"json":               {types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`, 200, "", "", []string{"spec", "replicas"}, int64(2)},
		"json, test fails":   {types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":3}]`, 422, metav1.StatusReasonInvalid, "the server rejected our request due to an error in our request", nil, nil},
		"json, path missing": {types.JSONPatchType, `[{"op":"replace","path":"/spec/none/a","value":3}]`, 422, metav1.StatusReasonInvalid, "", nil, nil},
		"json, no list":      {types.JSONPatchType, `{}`, 400, metav1.StatusReasonBadRequest, "", nil, nil},
		"json, wrong type":   {types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":"x"}]`, 422, metav1.StatusReasonInvalid, "patch: Invalid value", nil, nil},
		"merge":              {types.MergePatchType, `{"spec":{"replicas":2}}`, 200, "", "", []string{"spec", "replicas"}, int64(2)},
		"merge, removes":     {types.MergePatchType, `{"metadata":{"annotations":{"note":null,"b":"c"}}}`, 200, "", "", []string{"metadata", "annotations"}, map[string]any{"b": "c"}},
		"merge, removes all": {types.MergePatchType, `{"metadata":{"annotations": null}}`, 200, "", "", []string{"metadata", "annotations"}, nil},
		"merge, lists":       {types.MergePatchType, `{"metadata":{"labels":{"a":"b"},"annotations":{"x":"null"}}}`, 200, "", "", []string{"metadata", "labels"}, map[string]any{"team": "x", "a": "b"}},
		"merge, wrong value": {types.MergePatchType, `{"metadata":{"annotations":{"a":1}}}`, 422, metav1.StatusReasonInvalid, "patch: Invalid value", nil, nil},
		"merge, no object":   {types.MergePatchType, `[]`, 400, metav1.StatusReasonBadRequest, "", nil, nil},
		"strategic": {types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","value":"2"}]}]}}}}`, 200, "", "", []string{"spec", "template", "spec", "volumes"}, []any{
			map[string]any{"name": "v", "configMap": map[string]any{"name": "app", "defaultMode": int64(420)}},
		}},
		"apply untracked": {types.ApplyYAMLPatchType, `{}`, 415, metav1.StatusReasonUnsupportedMediaType, "", nil, nil},
		"unknown":         {"text/plain", `{}`, 415, metav1.StatusReasonUnsupportedMediaType, "", nil, nil},
		"other name":      {types.MergePatchType, `{"metadata":{"name":"b"}}`, 400, metav1.StatusReasonBadRequest, "does not match the name on the URL", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			post(t, s, deployments, cartBody).object()
			a := send(t, s, call{method: http.MethodPatch, path: cart, body: tc.body, contentType: string(tc.kind)})
			require.Equal(t, tc.code, a.Code, a.Body)
			if tc.code != 200 {
				assert.Equal(t, tc.reason, a.failure().Reason, a.Body)
				assert.Contains(t, a.failure().Message, tc.message)
				return
			}
			assert.EqualValues(t, tc.want, field(a.object(), tc.path...))
		})
	}
	assert.Equal(t, 404, merge(t, server(t), cart, `{}`).Code)
}

func TestStrategicPatchMergesContainers(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, deployments, cartBody).object()
	u := send(t, s, call{
		method: http.MethodPatch, path: cart, contentType: string(types.StrategicMergePatchType),
		body: `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"cart:2"},{"name":"d","image":"x:1"}]}}}}`,
	}).object()
	containers, _ := field(u, "spec", "template", "spec", "containers").([]any)
	require.Len(t, containers, 2)
	for _, c := range containers {
		if c, _ := c.(map[string]any); c["name"] == "c" {
			assert.Equal(t, "cart:2", c["image"])
			assert.NotEmpty(t, c["env"])
		}
	}
}

func tracked(o *apiserver.Options) { o.TrackFields = true }

func TestApply(t *testing.T) {
	t.Parallel()
	s := server(t, tracked)
	apply := func(manager, body, force string) answer {
		return send(t, s, call{method: http.MethodPatch, path: cart + "?fieldManager=" + manager + force, body: body, contentType: string(types.ApplyYAMLPatchType)})
	}
	a := apply("one", cartBody, "")
	require.Equal(t, 201, a.Code, a.Body)
	u := a.object()
	require.Len(t, u.GetManagedFields(), 1)
	assert.Equal(t, "one", u.GetManagedFields()[0].Manager)

	a = apply("one", cartBody, "")
	require.Equal(t, 200, a.Code)
	assert.Equal(t, u.GetResourceVersion(), a.object().GetResourceVersion(), "nothing changes")

	const two = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cart\n  labels:\n    team: z\n"
	a = apply("two", two, "")
	require.Equal(t, 409, a.Code, a.Body)
	status := a.failure()
	assert.Equal(t, metav1.StatusReasonConflict, status.Reason)
	require.Len(t, status.Details.Causes, 1)
	assert.Equal(t, metav1.CauseTypeFieldManagerConflict, status.Details.Causes[0].Type)
	assert.Equal(t, ".metadata.labels.team", status.Details.Causes[0].Field)

	u = apply("two", two, "&force=true").object()
	assert.Equal(t, "z", u.GetLabels()["team"])
	assert.Len(t, u.GetManagedFields(), 2)

	const less = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart"},"spec":{"selector":{"matchLabels":{"app":"cart"}},"template":{"metadata":{"labels":{"app":"cart"}},
"spec":{"containers":[{"name":"c","image":"cart:1"}]}}}}`
	u = apply("one", less, "").object()
	assert.Empty(t, u.GetAnnotations(), "what a manager no longer applies goes")
	assert.Equal(t, "z", u.GetLabels()["team"])
}

func TestUpdatesAreTracked(t *testing.T) {
	t.Parallel()
	s := server(t, tracked)
	post(t, s, deployments, cartBody).object()
	u := send(t, s, call{method: http.MethodPatch, path: cart, body: `{"metadata":{"annotations":{"a":"b"}}}`, contentType: "application/merge-patch+json", agent: "kubectl/v1"}).object()
	kubectl := managedBy(u, "kubectl", "")
	require.NotNil(t, kubectl)
	assert.JSONEq(t, `{"f:metadata":{"f:annotations":{"f:a":{}}}}`, string(kubectl.FieldsV1.GetRawBytes()))
	again := send(t, s, call{method: http.MethodPatch, path: cart, body: `{"metadata":{"annotations":{"a":"b"}}}`, contentType: "application/merge-patch+json", agent: "kubectl/v1"}).object()
	assert.Equal(t, u.GetResourceVersion(), again.GetResourceVersion())
	status := send(t, s, call{method: http.MethodPatch, path: cart + "/status", body: `{"status":{"replicas":1}}`, contentType: "application/merge-patch+json", agent: "kcm/v1"}).object()
	assert.NotNil(t, managedBy(status, "kcm", "status"))
}

func managedBy(u *unstructured.Unstructured, manager, subresource string) *metav1.ManagedFieldsEntry {
	for _, e := range u.GetManagedFields() {
		if e.Manager == manager && e.Subresource == subresource {
			return &e
		}
	}
	return nil
}
