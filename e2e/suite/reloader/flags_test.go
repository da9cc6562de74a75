package reloader_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// With the arguments and variables that Reloader's chart renders, as it writes them. There are no Argo Rollouts in this
// cluster, which harms nothing.
func scopeOfReloadersFlags(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	mark, err := cp.Audit().Mark()
	require.NoError(t, err)
	ignored := cp.Namespace(t, map[string]string{"pod-reloader": "enabled"})
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true,
		Components: []string{"namespace-selector", "auto-reload-all"}, // the one has the permission to read namespaces, the other the webhook
		Args: []string{
			"--namespaces-to-ignore=" + ignored, `--namespace-selector="pod-reloader:enabled"`,
			"--ignored-workload-types=jobs,cronjobs", "--is-Argo-Rollouts=true", "--enable-ha=true", "--log-level", "debug",
			"--reload-on-create", "true", "--sync-after-restart=true",
		},
		Env: []string{"METRICS_COUNT_BY_NAMESPACE=enabled", "RELOADER_NAMESPACE=elsewhere"},
	})
	inside, outside := fixture.New(t, in), fixture.In(t, in, ignored)
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	for _, s := range []*fixture.Fixture{outside, inside} {
		s.ConfigMap("app", fixture.Data{"key": "1"})
	}
	out, nightly, w := outside.Deployment("web", uses), inside.Workload("CronJob", "nightly", uses), inside.Deployment("web", uses)
	inside.AwaitKnown(w)
	outside.SetConfigMap("app", "key", "2")
	inside.SetConfigMap("app", "key", "2")
	inside.AwaitChanges(w, 1, "it is in scope")
	inside.SetConfigMap("app", "key", "3")
	inside.AwaitChanges(w, 2, "its configuration has changed again")
	countedTwice(inside)
	require.NoError(t, outside.Watcher.Sync(outside.Patiently()))
	outside.AssertChanges(out, 0, "its namespace is ignored")
	outside.AssertUnmanaged(out, "its namespace is ignored")
	inside.AssertUnmanaged(nightly, "CronJobs are ignored")
	inside.AssertExplained(outside, "--namespaces-to-ignore names "+ignored, "--namespaces-to-ignore="+ignored)

	requests, err := cp.Audit().Since(t.Context(), mark)
	require.NoError(t, err)
	assert.Empty(t, requests.By(in.Identity().User).In(ignored), "nothing is read there")
	assert.Empty(t, requests.By(in.Identity().User).Where(func(r controlplane.Request) bool {
		return r.Resource == "jobs" || r.Resource == "cronjobs"
	}), "what is ignored needs no permissions")
	reloadsAll(inside)
}

// countedTwice requires that the metric by namespace counts two reloads.
func countedTwice(s *fixture.Fixture) {
	s.Helper()
	counted := func() float64 {
		metrics, err := s.Installation.Metrics(s.Context())
		require.NoError(s, err)
		return metrics.Sum("pod_reloader_namespace_reloads_total", "namespace", s.Namespace)
	}
	s.Await("the metric by namespace", func() error {
		if n := counted(); n < 2 {
			return fmt.Errorf("it counts %v reloads", n)
		}
		return nil
	})
	settled(s)
	assert.InDelta(s, 2, counted(), 0, "each reload is counted once")
}

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
		s.AssertUnmanaged(w, "nothing is tracked")
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
