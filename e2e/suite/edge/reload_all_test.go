package edge_test

import (
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// reloadsAll requires what --auto-reload-all promises of an installation that runs with it: a workload without any annotation
// is stamped, and reloaded for what its pods reference, unless it has an auto annotation of its own.
func reloadsAll(s *fixture.Fixture) {
	s.Helper()
	s.ConfigMap("plain", fixture.Data{"key": "1"})
	manifest := referring(s, "plain", nil)
	plain, off, typed := create(s, manifest), create(s, referring(s, "off", map[string]string{"reloader.stakater.com/auto": "false"})),
		create(s, referring(s, "typed", map[string]string{"configmap.reloader.stakater.com/auto": "false"}))
	s.AwaitKnown(plain)
	s.SetConfigMap("plain", "key", "2")
	s.AwaitChanges(plain, 1, "its pods reference the ConfigMap")
	s.AwaitEvent(plain, "Reloaded", "configmap/plain modified")
	require.NoError(s, s.Update(s.Context(), manifest), "a PUT of a manifest that has no annotation")
	s.SetConfigMap("plain", "key", "3")
	s.AwaitChanges(plain, 2, "its configuration changed again")
	s.SetConfigMap("plain", "key", "4")
	s.AwaitChanges(plain, 3, "whatever the loop did about the earlier changes is done")
	settled(s)
	s.RequireChanges(plain, 3, "once each, and not for the PUT: the webhook is also asked about workloads that have no annotation")
	for _, w := range []observe.Workload{off, typed} {
		s.RequireChanges(w, 0, "it has an auto annotation of its own")
		unmanaged(s, w, "nothing is tracked")
	}
}

// settled is [fixture.Fixture.Settled] for an installation that reloads no CronJobs, not even those of that barrier.
func settled(s *fixture.Fixture) {
	s.Helper()
	require.NoError(s, s.Watcher.Sync(s.Patiently()))
	require.NoError(s, s.Installation.Quiet(s.Patiently(), "Deployment"))
	require.NoError(s, s.Watcher.Sync(s.Patiently()))
}

// referring is a Deployment whose pods reference the ConfigMap plain, which no annotation lists.
func referring(s *fixture.Fixture, name string, annotations map[string]string) *unstructured.Unstructured {
	s.Helper()
	manifest := s.Manifest("Deployment", name, fixture.Uses{ConfigMaps: []string{"plain"}})
	manifest.SetAnnotations(annotations)
	return manifest
}

// create creates a workload out of a manifest, and leaves that as it is.
func create(s *fixture.Fixture, manifest *unstructured.Unstructured) observe.Workload {
	s.Helper()
	s.CreatePromptly(manifest.DeepCopy())
	return observe.Workload{Kind: manifest.GetKind(), Namespace: s.Namespace, Name: manifest.GetName()}
}
