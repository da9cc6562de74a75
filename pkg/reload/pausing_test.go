package reload

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
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
	assert.Equal(t, queue.After(time.Minute, queue.Retry), notLater(queue.After(time.Minute, queue.Retry), time.Minute), "in time")
}

const (
	pausedAtKey    = "deployment.reloader.stakater.com/paused-at"
	pausePeriodKey = "deployment.reloader.stakater.com/pause-period"
	lastReloadKey  = annotation.DefaultPrefix + "last-reload"
)

// A label that excludes a Deployment ends no pause by itself: without its end, nothing would roll out any more.
func TestPauseOfAnExcludedDeploymentEnds(t *testing.T) {
	t.Parallel()
	body, _ := reconcilePaused(t, "", map[string]any{annotation.DefaultPrefix + "ignored": "true"}, map[string]any{
		annotation.DefaultPrefix + "configmaps": "app",
	})
	assert.Contains(t, body, `{"op":"remove","path":"/spec/paused"}`)
}

// An installation that does not read the annotations of Reloader any more ends the pauses that began when it did, and none of Reloader.
func TestPauseEndsWhereItsPeriodIsNotReadAnyMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations map[string]any
		resumed     bool
		wait        time.Duration
	}{
		"the period is over":       {annotations: map[string]any{lastReloadKey: "x", pausePeriodKey: "5m"}, resumed: true},
		"the period is not over":   {annotations: map[string]any{lastReloadKey: "x", pausePeriodKey: "3h"}, wait: 2 * time.Hour},
		"the period is removed":    {annotations: map[string]any{lastReloadKey: "x"}, resumed: true},
		"the period is not valid":  {annotations: map[string]any{lastReloadKey: "x", pausePeriodKey: "200h"}},
		"the pause is of Reloader": {annotations: map[string]any{pausePeriodKey: "5m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, wait := reconcilePaused(t, pausePeriodKey, nil, tc.annotations)
			assert.Equal(t, tc.resumed, strings.Contains(body, `{"op":"remove","path":"/spec/paused"}`), body)
			assert.Equal(t, tc.wait, wait)
		})
	}
}

// reconcilePaused returns what a leader that does not read the annotations of Reloader writes to a Deployment that was paused an hour ago,
// and when it looks at that again.
func reconcilePaused(t *testing.T, unread string, labels, annotations map[string]any) (body string, again time.Duration) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stored := map[string]any{pausedAtKey: now.Add(-time.Hour).Format(time.RFC3339)}
	maps.Copy(stored, annotations)
	kinds := workload.NewKinds(workload.Builtin()...)
	kind := kinds.Find("deployment")[0]
	c := &refusing{}
	with := loopDependencies{client: c, Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{}, Keys: &reloadtest.Keys{Present: digesttest.Ring(t, "a")}}}
	with.Workloads = func(kind workload.Kind, _ func(before, after workload.Summary, listed string)) tracking.Workloads {
		return single{reloadtest.Summary(kind, map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "web", "resourceVersion": "5", "labels": labels, "annotations": stored},
			"spec":     map[string]any{"paused": true, "template": map[string]any{"spec": map[string]any{}}},
		})}
	}
	l, _ := leading(t, with, Options{PausedAt: pausedAtKey, UnreadPausePeriod: unread, Now: func() time.Time { return now }})
	l.tracking.Follow(t.Context(), refresh.NewKinds(kinds))
	result, err := l.Reconcile(t.Context(), workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"})
	require.NoError(t, err)
	if c.body != "" {
		return c.body, 0 // the write is refused, and tried again
	}
	return "", result.RequeueAfter
}
