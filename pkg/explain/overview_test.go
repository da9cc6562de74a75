package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
)

func TestOverviewHasALineForEachWorkload(t *testing.T) {
	t.Parallel()
	failing := &explain.Warning{Age: "4s", Message: "the watch of secrets is refused"}
	o := explain.Overview{NotAsked: 2, AllNamespaces: true, FailingWatch: failing, Workloads: []explain.Report{
		{
			Kind: "Deployment", Namespace: "bank", Name: "cart", Verdict: "nothing", Reason: "the pods have the current configuration",
			LastReload: &explain.LastReload{Age: "12s"}, Problems: []string{"100% of replicas\nare away"},
		},
		{Kind: "StatefulSet", Namespace: "shop", Name: "db", Verdict: "hold", Reason: "secret/db is missing", Warnings: []explain.Warning{
			{Reason: "ReloadHeld", Message: "reload held: secret/db is missing"},
		}},
		{
			Kind: "Deployment", Namespace: "shop", Name: "web", Verdict: "reload", Reason: "configmap/app modified", FailingWatch: failing,
			Problems: []string{"100% of replicas\nare away", "secret/x not found"},
			Warnings: []explain.Warning{
				{Age: "3s", Reason: "ReloadFailed", Message: "denied\x1b[2J"}, {Reason: "ConfigMissing", Message: "secret/x not found"},
			},
		},
		{Kind: "CronJob", Namespace: "shop", Name: "report", Verdict: "unknown", Reason: "secret/s cannot be read", FailingWatch: failing},
	}}
	var b strings.Builder
	require.NoError(t, o.Write(&b))
	assert.Equal(t, `NAMESPACE  WORKLOAD         DUE      LAST RELOAD  REASON
bank       deployment/cart  no       12s ago      the pods have the current configuration
shop       statefulset/db   held     -            secret/db is missing
shop       deployment/web   yes      -            configmap/app modified
shop       cronjob/report   unknown  -            secret/s cannot be read

Problem of 2 workloads: 100% of replicas; are away

Warning for deployment/web -n shop, 3s ago, ReloadFailed: denied`+"\ufffd"+`[2J

Problem of deployment/web -n shop: secret/x not found

A watch of pod-reloader fails, as reported 4s ago: the watch of secrets is refused

4 workloads: 1 due, 1 held, 1 unknown. Without an annotation that asks for reloads: 2.
`, b.String())
}

func TestOverviewOfOneNamespace(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]explain.Overview{
		"0 workloads: none is due.\n": {},
		"0 workloads: none is due. Without an annotation that asks for reloads: 7.\n": {NotAsked: 7},
		"A watch of pod-reloader fails, as reported 4s ago: secrets\n\n0 workloads: none is due.\n": {
			FailingWatch: &explain.Warning{Age: "4s", Message: "secrets"},
		},
		"Problem: cannot list CronJobs\n\n0 workloads: none is due.\n": {Problems: []string{"cannot list CronJobs"}},
		"WORKLOAD  DUE  LAST RELOAD  REASON\njob/x     no   -            x\n\n1 workload: none is due.\n": {
			Workloads: []explain.Report{{Kind: "Job", Namespace: "shop", Name: "x", Verdict: "nothing", Reason: "x"}},
		},
	} {
		var b strings.Builder
		require.NoError(t, o.Write(&b))
		assert.Equal(t, want, b.String())
	}
}

// The findings of a workload are those of its Report.
func TestOverviewOfAReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.in.States[app] = f.state("2", "b")
	f.in.Warnings = []explain.Warning{{Time: now.Add(-time.Second), Reason: "ReloadFailed", Message: "denied"}}
	var b strings.Builder
	require.NoError(t, explain.Overview{Workloads: []explain.Report{f.explain()}}.Write(&b))
	assert.Contains(t, b.String(), "deployment/cart  yes  -            configmap/app modified\n")
	assert.Contains(t, b.String(), "\nWarning for deployment/cart, 1s ago, ReloadFailed: denied\n")
	assert.Contains(t, b.String(), "\n1 workload: 1 due.\n")
}

func TestOverviewHasTheAgeOfTheNewestWarning(t *testing.T) {
	t.Parallel()
	var o explain.Overview
	for _, age := range []time.Duration{3 * time.Minute, time.Minute, 2 * time.Minute} {
		o.Workloads = append(o.Workloads, explain.Report{Kind: "Job", Reason: "x", Warnings: []explain.Warning{
			{Time: now.Add(-age), Age: age.String(), Reason: "ReloadFailed", Message: "denied"},
		}})
	}
	var b strings.Builder
	require.NoError(t, o.Write(&b))
	assert.Contains(t, b.String(), "\nWarning for 3 workloads, 1m0s ago, ReloadFailed: denied\n")
}
