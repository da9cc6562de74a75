package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestVerdictsAreCountedByReason(t *testing.T) {
	t.Parallel()
	ref := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	modified, deleted := policy.Change{Ref: ref, Type: policy.Modified}, policy.Change{Ref: ref, Type: policy.Deleted}
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, new(state.State).Due.Oldest, time.Now)
	adopted := policy.Verdict{Action: policy.Nothing, Adopt: []reference.Ref{ref}, Foreign: "aaaaaaaa"}
	for _, v := range []policy.Verdict{
		{Action: policy.Reload, Changes: []policy.Change{modified, modified}},
		{Action: policy.Reload, Changes: []policy.Change{modified, deleted}},
		{Action: policy.Hold, Changes: []policy.Change{deleted}},
		{Action: policy.Nothing, Adopt: []reference.Ref{ref}},
		{Action: policy.Nothing, Adopt: []reference.Ref{ref, {Kind: reference.Secret, Name: "app"}}},
		adopted,
		{Action: policy.Nothing},
	} {
		m.verdict(policy.Known{}, v)
	}
	m.verdict(policy.Known{Hash: "that of another program"}, adopted)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_reloader_verdicts_total Decisions to reload, hold or adopt, by reason: created, modified, deleted, several; unknown or foreign-key for adopt.
# TYPE pod_reloader_verdicts_total counter
pod_reloader_verdicts_total{reason="deleted",verdict="hold"} 1
pod_reloader_verdicts_total{reason="foreign-key",verdict="adopt"} 1
pod_reloader_verdicts_total{reason="modified",verdict="reload"} 1
pod_reloader_verdicts_total{reason="several",verdict="reload"} 1
pod_reloader_verdicts_total{reason="unknown",verdict="adopt"} 3
`), "pod_reloader_verdicts_total"), "what is routine is not counted")
}

// Prometheus computes an increase only from a value that it has scraped before.
func TestWritesAndReloadsOfEachFollowedKindAreZeroBeforeTheFirstOne(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	l := newLoop(loopDependencies{Dependencies: Dependencies{
		Metrics: registry, Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{},
		Workloads: func(workload.Kind, func(before, after workload.Summary, listed string)) tracking.Workloads {
			return single{}
		},
	}}, Options{})
	deployments := workload.Deployment()
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(deployments, reloadtest.JobKind)))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_reloader_direct_writes_total Templates stamped by the loop itself, because no webhook answered or in direct mode.
# TYPE pod_reloader_direct_writes_total counter
pod_reloader_direct_writes_total{kind="Deployment"} 0
# HELP pod_reloader_reloads_total Workloads stamped, by kind of workload and kind of config object that caused it (several; or the cause where no object changed).
# TYPE pod_reloader_reloads_total counter
pod_reloader_reloads_total{cause="configmap",kind="Deployment"} 0
pod_reloader_reloads_total{cause="secret",kind="Deployment"} 0
`), "pod_reloader_direct_writes_total", "pod_reloader_reloads_total"), "the loop does not stamp Jobs")
}

func TestDueReloadsAreCountedWithTheAgeOfTheOldest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	registry, due := prometheus.NewRegistry(), &new(state.State).Due
	newMetrics(registry, due.Oldest, func() time.Time { return now })
	value := func(name string) float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	age := func() float64 { return value("pod_reloader_oldest_due_reload_age_seconds") }
	count := func() float64 { return value("pod_reloader_due_reloads") }
	assert.Zero(t, age(), "nothing is due")
	assert.Zero(t, count())
	due.Add(workload.Key{Name: "web"}, now.Add(-90*time.Second))
	assert.InDelta(t, 90.0, age(), 0.001)
	assert.InDelta(t, 1.0, count(), 0)
	due.Forget(workload.Key{Name: "web"})
	due.Add(workload.Key{Name: "web"}, now.Add(time.Minute))
	assert.Zero(t, age(), "it is not due yet")
	due.Forget(workload.Key{Name: "web"})
	assert.Zero(t, age())
}
