package reloader_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// withRollouts is a namespace whose observer sees Rollouts as well.
func withRollouts(t *testing.T, in *installation.Installation) *fixture.Fixture {
	t.Helper()
	s := fixture.New(t, in)
	s.Watcher = observe.New(t, in.ControlPlane().Admin(), s.Namespace, observe.Kind{
		Name: "Rollout", Resource: fixture.WorkloadKind("Rollout").GroupVersion().WithResource("rollouts"), Template: "spec.template",
	})
	return s
}

// mergePatchesUnderStrategy applies manifests of a custom kind: kubectl apply sends a merge patch, which replaces the containers as a whole
// and lets the annotations of the template stay.
func mergePatchesUnderStrategy(s *fixture.Fixture, strategy string) {
	s.Helper()
	apply := func(image string) {
		s.Helper()
		text, err := json.Marshal(forReloader(s, "Rollout", image, fixture.ReloaderAuto).Object)
		require.NoError(s, err)
		_, err = s.Installation.ControlPlane().KubectlInput(s.Patiently(), string(text), "apply", "-f", "-")
		require.NoError(s, err)
	}
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	apply("example.com/app:1")
	w := observe.Workload{Kind: "Rollout", Namespace: s.Namespace, Name: "web"}
	s.AwaitAdopted(w, "configmap/app")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "a change")
	hash, reloaded := written(s, w, strategy, "configmap", "app"), templateOf(s, w)
	apply("example.com/app:1")
	apply("example.com/app:1")
	s.AwaitExactly(1, "the manifest has not changed", w)
	apply("example.com/app:2")
	assert.Equal(s, hash, written(s, w, strategy, "configmap", "app"), "a release keeps what the reload has written")
	apply("example.com/app:1")
	s.AwaitExactly(3, "a release, and its rollback", w)
	assert.Equal(s, reloaded, templateOf(s, w), "the rollback finds the pods of the first release")
}

// templateOf returns the pod template of a workload.
func templateOf(s *fixture.Fixture, w observe.Workload) map[string]any {
	s.Helper()
	template, _, err := unstructured.NestedMap(s.Get(w).Object, "spec", "template")
	require.NoError(s, err)
	return template
}
