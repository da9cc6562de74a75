package edge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// With the arguments and variables that Reloader's chart renders, as it writes them. There are no Argo Rollouts in this
// cluster, which harms nothing.
func scopeOfReloadersFlags(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	mark, err := cp.Audit().Mark()
	require.NoError(t, err)
	ignored := cp.Namespace(t, map[string]string{"pod-reloader": "enabled"})
	in := installed(t, cp, installation.Options{
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
	unmanaged(outside, out, "its namespace is ignored")
	unmanaged(inside, nightly, "CronJobs are ignored")
	explained(inside, outside, "--namespaces-to-ignore names "+ignored, "--namespaces-to-ignore="+ignored)

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
