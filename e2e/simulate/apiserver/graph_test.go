package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
)

const (
	filters = "/apis/proxy.example.com/v1/namespaces/shop/filters"
	auth    = filters + "/auth"
)

const authBody = `{"apiVersion":"proxy.example.com/v1","kind":"Filter","metadata":{"name":"auth"},
"spec":{"mode":"fast","secretRef":{"name":"tls"}},"status":{"observedGeneration":7}}`

// applyMark applies annotations.
func applyMark(t *testing.T, s *apiserver.Server, uid, annotations string) answer {
	t.Helper()
	return send(t, s, call{
		method: http.MethodPatch, path: auth + "?fieldManager=one&force=true", contentType: "application/apply-patch+yaml",
		body: `{"apiVersion":"proxy.example.com/v1","kind":"Filter","metadata":{"name":"auth","namespace":"shop","uid":"` + uid + `","annotations":{` + annotations + `}}}`,
	})
}

func TestGraphIsServedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	assert.Equal(t, http.StatusNotFound, get(t, server(t), filters).Code)
	s := server(t, func(o *apiserver.Options) { o.Graph = true })
	created := post(t, s, filters, authBody).object()
	assert.EqualValues(t, 1, created.GetGeneration())
	assert.Nil(t, field(created, "status", "observedGeneration"), "the status is a resource of its own")
	assert.Contains(t, get(t, s, "/apis/proxy.example.com/v1").Body, `"kind":"Filter"`, "discovery names it")

	status := merge(t, s, auth+"/status", `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`).object()
	assert.EqualValues(t, 1, status.GetGeneration())
	assert.EqualValues(t, 1, field(status, "status", "observedGeneration"))
	assert.EqualValues(t, 1, merge(t, s, auth, `{"metadata":{"labels":{"a":"1"}}}`).object().GetGeneration())
	edited := merge(t, s, auth, `{"spec":{"mode":"slow"}}`).object()
	assert.EqualValues(t, 2, edited.GetGeneration(), "only a change of the spec counts")
	assert.EqualValues(t, 1, field(edited, "status", "observedGeneration"), "the status is stale then")
	assert.Equal(t, "tls", field(edited, "spec", "secretRef", "name"))
}

func TestGraphAppliesAnnotations(t *testing.T) {
	t.Parallel()
	s := server(t, func(o *apiserver.Options) { o.Graph = true })
	assert.Equal(t, http.StatusConflict, applyMark(t, s, "gone", `"a":"1"`).Code, "an apply with a uid creates nothing")
	created := post(t, s, filters, authBody).object()
	uid := string(created.GetUID())
	merge(t, s, auth, `{"metadata":{"annotations":{"user":"1"}}}`)
	require.Equal(t, http.StatusConflict, applyMark(t, s, "other", `"a":"1"`).Code)
	applied := applyMark(t, s, uid, `"a":"1","b":"1"`).object()
	assert.Equal(t, map[string]string{"a": "1", "b": "1", "user": "1"}, applied.GetAnnotations())
	again := applyMark(t, s, uid, `"a":"1","b":"1"`).object()
	assert.Equal(t, applied.GetResourceVersion(), again.GetResourceVersion(), "it changes nothing")
	assert.Equal(t, http.StatusConflict, applyMark(t, s, uid+`","resourceVersion":"1`, `"b":"2"`).Code, "it has changed since")
	version := again.GetResourceVersion()
	assert.Equal(t, map[string]string{"b": "2", "user": "1"}, applyMark(t, s, uid+`","resourceVersion":"`+version, `"b":"2"`).object().GetAnnotations(),
		"what it owned and leaves out goes")
	refused := send(t, s, call{
		method: http.MethodPatch, path: auth + "?fieldManager=one&force=true", contentType: "application/apply-patch+yaml", body: `{"spec":{"mode":"x"}}`,
	})
	assert.Equal(t, http.StatusBadRequest, refused.Code, "the model applies nothing else")
}
