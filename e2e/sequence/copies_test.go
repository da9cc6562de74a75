package sequence_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/installation/scene"
	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// A workload is exported and created elsewhere, as `get -o yaml | create` and Velero's restore do: with all our marks.
func TestMarksCopiedFromElsewhereDoNothing(t *testing.T) {
	t.Parallel()
	from, to := scene.New(t, shared), scene.New(t, shared)
	from.ConfigMap("app", scene.Data{"key": "1"})
	w := from.Deployment("web", scene.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	from.SetConfigMap("app", "key", "2")
	from.AwaitChanges(w, 1, "the content changed")
	to.ConfigMap("app", scene.Data{"key": "other"})

	restored := from.Get(w)
	require.Contains(t, restored.GetAnnotations(), scene.LastReload)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(restored.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(restored.Object, "status")
	restored.SetNamespace(to.Namespace)
	annotations := restored.GetAnnotations()
	annotations[scene.ConfigHash] = "0123456789abcdef@7"
	annotations[scene.ConfigRecord] = "v1:-:00000000:configmap/app~0123456789abcdef@1"
	restored.SetAnnotations(annotations)
	require.NoError(t, to.Create(t.Context(), restored), "a stale dummy that came along is no reason to reject")

	copied := observe.Deployment(to.Namespace, "web")
	stored := to.Get(copied)
	for _, mark := range []string{scene.ConfigHash, scene.LastReload} {
		assert.NotContains(t, stored.GetAnnotations(), mark, "a mark of another workload says nothing here")
	}
	assert.NotContains(t, stored.GetAnnotations()[scene.ConfigRecord], "0123456789abcdef", "nor does its Record")
	assert.NotEqual(t, scene.TemplateAnnotations(from.Get(w))[scene.ConfigHash], scene.TemplateAnnotations(stored)[scene.ConfigHash],
		"the copy is stamped with the content of its own namespace")
	to.Settled()
	to.RequireChanges(copied, 0, "it was created with what it needs")
	to.SetConfigMap("app", "key", "changed")
	to.AwaitChanges(copied, 1, "and it is looked after")
	to.Settled()
	to.RequireChanges(copied, 1, "once")
}

func TestSameNameAndContentInTwoNamespacesHaveDifferentDigests(t *testing.T) {
	t.Parallel()
	var hashes, records []string
	for range 2 {
		s := scene.New(t, shared)
		s.ConfigMap("app", scene.Data{"key": "1"})
		stored := s.Get(s.Deployment("web", scene.Uses{ConfigMaps: []string{"app"}}))
		hashes = append(hashes, scene.TemplateAnnotations(stored)[scene.ConfigHash])
		records = append(records, entry(t, stored.GetAnnotations()[scene.ConfigRecord]))
	}
	assert.NotEqual(t, hashes[0], hashes[1], "one tenant's digest must tell nothing about another's content")
	assert.NotEqual(t, records[0], records[1])
}

// A Secret applied by kubectl carries its plain text in an annotation; moving a key from data to binaryData is a change.
func TestContentIsComparedNotItsWrapping(t *testing.T) {
	t.Parallel()
	s := scene.New(t, shared)
	apply := func(manifest string) {
		t.Helper()
		_, err := s.Installation.ControlPlane().KubectlInput(t.Context(), "---\n"+manifest, "apply", "-n", s.Namespace, "-f", "-")
		require.NoError(t, err)
	}
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: one}}")
	s.ConfigMap("app", scene.Data{"key": "value"})
	bySecret := s.Deployment("by-secret", scene.Uses{Secrets: []string{"db"}})
	byConfigMap := s.Deployment("by-configmap", scene.Uses{ConfigMaps: []string{"app"}})

	apply("{apiVersion: v1, kind: Secret, metadata: {name: db, labels: {a: b}}, stringData: {password: one}}")
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {password: b25l}}")
	s.Settled()
	s.RequireChanges(bySecret, 0, "the same value, written in other ways")
	apply("{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {password: dHdv}}")
	s.AwaitChanges(bySecret, 1, "another value")

	s.Merge(&corev1.ConfigMap{}, "app", `{"data":null,"binaryData":{"key":"dmFsdWU="}}`)
	s.AwaitChanges(byConfigMap, 1, "an env variable from data is gone when the key moves to binaryData")
	s.Settled()
	s.RequireChanges(bySecret, 1, "once")
	s.RequireChanges(byConfigMap, 1, "once")
}
