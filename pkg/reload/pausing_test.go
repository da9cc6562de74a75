package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestPausedWorkloadIsLookedAtWhenThePeriodEnds(t *testing.T) {
	t.Parallel()
	assert.Equal(t, reconcile.Result{}, notLater(reconcile.Result{}, 0))
	assert.Equal(t, time.Minute, notLater(reconcile.Result{}, time.Minute).RequeueAfter)
	assert.Equal(t, time.Second, notLater(queue.After(time.Second, queue.Retry), time.Minute).RequeueAfter)
	assert.Equal(t, queue.After(time.Second, queue.Config), notLater(queue.After(time.Minute, queue.Config), time.Second), "the priority stays")
	assert.Equal(t, queue.After(time.Second, queue.Workload), notLater(queue.After(time.Minute, queue.Retry), time.Second))
	assert.Equal(t, time.Minute, notLater(queue.After(time.Hour, queue.Retry), time.Minute).RequeueAfter)
}

// A label that excludes a Deployment ends no pause by itself: without its end, nothing would roll out any more.
func TestPauseOfAnExcludedDeploymentEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const pausedAt = "deployment.reloader.stakater.com/paused-at"
	kinds := workload.NewKinds(workload.Builtin()...)
	kind := kinds.Find("deployment")[0]
	c := &refusing{}
	with := cluster{client: c, Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{}, Keys: &reloadtest.Keys{Present: reloadtest.Ring(t, "a")}}}
	with.Workloads = func(kind workload.Kind, _ func(before, after workload.Summary)) tracking.Workloads {
		return single{reloadtest.Summary(kind, map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "resourceVersion": "5", "labels": map[string]any{annotation.DefaultPrefix + "ignored": "true"},
				"annotations": map[string]any{pausedAt: now.Add(-time.Hour).Format(time.RFC3339), annotation.DefaultPrefix + "configmaps": "app"},
			},
			"spec": map[string]any{"paused": true, "template": map[string]any{"spec": map[string]any{}}},
		})}
	}
	l, _ := leading(t, with, Options{PausedAt: pausedAt, Now: func() time.Time { return now }})
	l.tracking.Follow(t.Context(), refresh.NewKinds(kinds))
	_, err := l.Reconcile(t.Context(), workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"})
	require.NoError(t, err)
	assert.Contains(t, c.body, `"paused":null`)
}
