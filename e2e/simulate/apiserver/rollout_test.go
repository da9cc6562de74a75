package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	rollouts = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts"
	pay      = rollouts + "/pay"
)

// payBody is a Rollout as a user writes it.
const payBody = `{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","metadata":{"name":"pay"},
"spec":{"replicas":2,"selector":{"matchLabels":{"app":"pay"}},"template":{"metadata":{"labels":{"app":"pay"}},
"spec":{"containers":[{"name":"c","image":"pay:1"}]}}}}`

func TestCustomResourceIsServedWithItsOwnRules(t *testing.T) {
	t.Parallel()
	s := server(t)
	created := post(t, s, rollouts, payBody).object()
	assert.Equal(t, "Rollout", created.GetKind())
	assert.EqualValues(t, 1, created.GetGeneration())
	assert.Contains(t, get(t, s, "/apis/argoproj.io/v1alpha1").Body, `"kind":"Rollout"`, "discovery names it")

	strategic := send(t, s, call{
		method: http.MethodPatch, path: pay, body: `{}`, contentType: "application/strategic-merge-patch+json",
	})
	assert.Equal(t, http.StatusUnsupportedMediaType, strategic.Code)
	unpinned := put(t, s, pay, payBody)
	assert.Equal(t, http.StatusUnprocessableEntity, unpinned.Code)
	assert.Contains(t, unpinned.failure().Message, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")

	annotated := merge(t, s, pay, `{"metadata":{"annotations":{"a":"1"}}}`).object()
	assert.EqualValues(t, 1, annotated.GetGeneration(), "unlike a Deployment's, its annotations do not matter")
	changed := merge(t, s, pay, `{"spec":{"replicas":3}}`).object()
	assert.EqualValues(t, 2, changed.GetGeneration())
	version := changed.GetResourceVersion()
	pinned := strings.Replace(payBody, `"name":"pay"`, `"name":"pay","resourceVersion":"`+version+`"`, 1)
	require.Equal(t, http.StatusOK, put(t, s, pay, pinned).Code)
	status := merge(t, s, pay+"/status", `{"status":{"replicas":2},"spec":{"replicas":9}}`).object()
	assert.EqualValues(t, 2, field(status, "spec", "replicas"), "the status is a resource of its own")
}

func TestCustomResourceHasNoProtobufForm(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, rollouts, payBody)
	const protobuf = "application/vnd.kubernetes.protobuf"
	whole := send(t, s, call{method: http.MethodGet, path: pay, accept: protobuf + ",application/json"})
	assert.Equal(t, "pay", whole.object().GetName())
	partial := send(t, s, call{method: http.MethodGet, path: pay, accept: protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"})
	assert.Equal(t, protobuf, partial.Header.Get("Content-Type"), "metadata are a type of the API machinery")
}

func TestCustomResourceKeepsTheTimeOfARestart(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, rollouts, payBody)
	const at, later = "2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z"
	asked := merge(t, s, pay, `{"spec":{"restartAt":"`+at+`"}}`).object()
	assert.Equal(t, at, field(asked, "spec", "restartAt"))
	assert.EqualValues(t, 2, asked.GetGeneration(), "it is part of the spec")
	again := merge(t, s, pay, `{"spec":{"restartAt":"`+later+`"}}`).object()
	assert.EqualValues(t, 3, again.GetGeneration())
	same := merge(t, s, pay, `{"spec":{"restartAt":"`+later+`"}}`).object()
	assert.Equal(t, again.GetResourceVersion(), same.GetResourceVersion(), "nothing has changed")

	noted := merge(t, s, pay+"/status", `{"status":{"restartedAt":"`+later+`"},"spec":{"restartAt":"`+at+`"}}`).object()
	assert.Equal(t, later, field(noted, "status", "restartedAt"))
	assert.Equal(t, later, field(noted, "spec", "restartAt"))
	assert.EqualValues(t, 3, noted.GetGeneration())

	pinned := strings.Replace(payBody, `"name":"pay"`, `"name":"pay","resourceVersion":"`+noted.GetResourceVersion()+`"`, 1)
	replaced := put(t, s, pay, pinned).object()
	assert.Nil(t, field(replaced, "spec", "restartAt"), "a manifest without it takes it away")
	assert.Equal(t, later, field(replaced, "status", "restartedAt"))
	assert.EqualValues(t, 4, replaced.GetGeneration())
}
