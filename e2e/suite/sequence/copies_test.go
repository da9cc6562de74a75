package sequence_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A workload is exported and created elsewhere, as `get -o yaml | create` and Velero's restore do: with our annotations.
func TestCopiedManagedAnnotationsDoNothing(t *testing.T) {
	t.Parallel()
	from, to := fixture.New(t, shared), fixture.New(t, shared)
	from.ConfigMap("app", fixture.Data{"key": "1"})
	w := from.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	from.SetConfigMap("app", "key", "2")
	from.AwaitChanges(w, 1, "the content changed")
	to.ConfigMap("app", fixture.Data{"key": "other"})

	restored := from.Get(w)
	require.Contains(t, restored.GetAnnotations(), fixture.LastReload)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(restored.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(restored.Object, "status")
	restored.SetNamespace(to.Namespace)
	annotations := restored.GetAnnotations()
	annotations[fixture.ConfigHash] = "0123456789abcdef@7"
	annotations[fixture.ConfigRecord] = "v1:-:00000000:configmap/app~0123456789abcdef@1"
	restored.SetAnnotations(annotations)
	to.CreatePromptly(restored) // a stale dummy that came along is no reason to reject

	copied := observe.Deployment(to.Namespace, "web")
	stored := to.Get(copied)
	for _, key := range []string{fixture.ConfigHash, fixture.LastReload} {
		assert.NotContains(t, stored.GetAnnotations(), key, "an annotation of another workload is not kept")
	}
	assert.NotContains(t, stored.GetAnnotations()[fixture.ConfigRecord], "0123456789abcdef", "nor does its Record")
	assert.NotEqual(t, fixture.TemplateAnnotations(from.Get(w))[fixture.ConfigHash], fixture.TemplateAnnotations(stored)[fixture.ConfigHash],
		"the copy is stamped with the content of its own namespace")
	to.AwaitExactly(0, "it was created with what it needs", copied)
	to.SetConfigMap("app", "key", "changed")
	to.AwaitExactly(1, "and it is reloaded", copied)
}

// A Secret applied by kubectl carries its plain text in an annotation; moving a key from data to binaryData is a change.
func TestContentIsComparedNotItsWrapping(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	apply := func(manifest string) {
		t.Helper()
		_, err := s.Installation.ControlPlane().KubectlInput(t.Context(), "---\n"+manifest, "apply", "-n", s.Namespace, "-f", "-")
		require.NoError(t, err)
	}
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: one}}")
	s.ConfigMap("app", fixture.Data{"key": "value"})
	bySecret := s.Deployment("by-secret", fixture.Uses{Secrets: []string{"db"}})
	byConfigMap := s.Deployment("by-configmap", fixture.Uses{ConfigMaps: []string{"app"}})

	apply("{apiVersion: v1, kind: Secret, metadata: {name: db, labels: {a: b}}, stringData: {password: one}}")
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {password: b25l}}")
	s.AwaitExactly(0, "the same value, written in other ways", bySecret)
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {password: dHdv}}")
	s.AwaitChanges(bySecret, 1, "another value")

	s.Merge(&corev1.ConfigMap{}, "app", `{"data":null,"binaryData":{"key":"dmFsdWU="}}`)
	s.AwaitExactly(1, "an env variable from data is gone when the key moves to binaryData", bySecret, byConfigMap)
}
