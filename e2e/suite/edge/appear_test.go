package edge_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// With --reload-on-create, an object that nothing names restarts what selects it once it exists, if it was created so. What is selected
// later restarts nothing, nor does an object whose creation was not seen.
func createdForAPattern(t *testing.T, cp *controlplane.ControlPlane, withoutWebhook bool) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		WithoutWebhook: withoutWebhook, Args: []string{"--reload-on-create"}, Components: []string{"run-cronjobs"},
	})
	s := fixture.New(t, in)
	s.ConfigMap("app-0", fixture.Data{"key": "1"})
	workloads := s.EveryKind("web", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app-.*"}})
	empty := s.Deployment("empty", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "new-.*"}})
	s.CreatePromptly(optionally(s, "searching", "marked", "unmarked"))
	searching := observe.Deployment(s.Namespace, "searching")
	for _, w := range workloads {
		s.AwaitAdopted(w, "configmap/app-0")
	}

	s.ConfigMap("app-1", fixture.Data{"key": "1"})
	s.AwaitExactly(1, "an object that the expression matches is created", workloads...)
	for _, w := range workloads {
		s.AwaitEvent(w, "Reloaded", "configmap/app-1 created")
	}
	s.SetConfigMap("app-1", "key", "2")
	s.AwaitExactly(2, "its changes count", workloads...)

	s.ConfigMap("new-1", fixture.Data{"key": "1"})
	s.AwaitChanges(empty, 1, "it is the first one that the expression matches")
	annotatedConfigMap(s, "marked", "reloader.stakater.com/match")
	s.AwaitChanges(searching, 1, "it is created with the mark")

	s.ConfigMap("unmarked", fixture.Data{"key": "1"})
	annotatedConfigMap(s, "app-2", "reloader.stakater.com/ignore")
	s.ConfigMap("later-1", fixture.Data{"key": "1"})
	s.Settled()
	s.Merge(&corev1.ConfigMap{}, "unmarked", `{"metadata":{"annotations":{"reloader.stakater.com/match":"true"}}}`)
	s.Merge(&corev1.ConfigMap{}, "app-2", `{"metadata":{"annotations":{"reloader.stakater.com/ignore":null}}}`)
	s.MergeWorkload(empty, `{"metadata":{"annotations":{"`+fixture.ReloaderConfigMaps+`":"new-.*,later-.*"}}}`)
	s.AwaitAdopted(searching, "configmap/unmarked")
	s.AwaitAdopted(empty, "configmap/later-1")
	for _, w := range workloads {
		s.AwaitAdopted(w, "configmap/app-2")
	}
	s.AwaitExactly(2, "an object that is not ignored any more is adopted", workloads...)
	s.RequireChanges(searching, 1, "an object that is marked later is adopted")
	s.RequireChanges(empty, 1, "an object that was there before the list is adopted")

	require.NoError(t, in.StopAll(s.Patiently()))
	s.ConfigMap("app-3", fixture.Data{"key": "1"})
	require.NoError(t, in.StartAll(s.Patiently()))
	for _, w := range workloads {
		s.AwaitAdopted(w, "configmap/app-3")
	}
	s.AwaitExactly(2, "its creation was not seen", workloads...)
	createdWithOtherWrites(s, workloads)
	fixture.AssertNothingDenied(t, in)
}

// createdWithOtherWrites has the workloads written right after the creation of an object, as an apply of everything does.
func createdWithOtherWrites(s *fixture.Fixture, workloads []observe.Workload) {
	s.Helper()
	s.ConfigMap("app-4", fixture.Data{"key": "1"})
	for _, w := range workloads {
		if w.Kind != "Deployment" { // its generation rises with each annotation, as if there were a new template
			s.MergeWorkload(w, `{"metadata":{"annotations":{"example.org/applied":"4"}}}`)
		}
	}
	s.AwaitExactly(3, "a write of the workload does not hide the creation", workloads...)
}

// optionally is a Deployment that asks for marked objects, and whose pods need none of them.
func optionally(s *fixture.Fixture, name string, configMaps ...string) *unstructured.Unstructured {
	s.Helper()
	manifest := s.Manifest("Deployment", name, fixture.Uses{ConfigMaps: configMaps})
	manifest.SetAnnotations(map[string]string{"reloader.stakater.com/search": "true"})
	containers, _, err := unstructured.NestedSlice(manifest.Object, "spec", "template", "spec", "containers")
	require.NoError(s, err)
	for _, source := range containers[0].(map[string]any)["envFrom"].([]any) {
		source.(map[string]any)["configMapRef"].(map[string]any)["optional"] = true
	}
	require.NoError(s, unstructured.SetNestedSlice(manifest.Object, containers, "spec", "template", "spec", "containers"))
	return manifest
}

// annotatedConfigMap creates one with an annotation that is true.
func annotatedConfigMap(s *fixture.Fixture, name, annotation string) {
	s.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: name, Annotations: map[string]string{annotation: "true"},
	}}
	require.NoError(s, s.Create(s.Context(), object))
}
