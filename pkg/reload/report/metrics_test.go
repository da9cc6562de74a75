package report

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestReloadsAreCountedByNamespaceWhereAskedFor(t *testing.T) {
	t.Parallel()
	kind := workload.Builtin()[1]
	for _, asked := range []bool{true, false} {
		registry := prometheus.NewRegistry()
		m := newMetrics(registry, asked)
		m.reloaded("shop", kind, record.LastReload{})
		m.reloaded("shop", kind, record.LastReload{})
		m.reloaded("bank", kind, record.LastReload{})
		want := ""
		if asked {
			want = `
# HELP pod_reloader_namespace_reloads_total Workloads stamped, by namespace; only with METRICS_COUNT_BY_NAMESPACE=enabled.
# TYPE pod_reloader_namespace_reloads_total counter
pod_reloader_namespace_reloads_total{namespace="bank"} 1
pod_reloader_namespace_reloads_total{namespace="shop"} 2
`
		}
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "pod_reloader_namespace_reloads_total"))
	}
}

// Two loops in one process count together.
func TestSecondRegistrationReturnsTheFirstCollector(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	options := prometheus.CounterOpts{Name: "reloads"}
	first := Register(registry, prometheus.NewCounter(options))
	second := Register(registry, prometheus.NewCounter(options))
	second.Inc()
	require.InDelta(t, 1, testutil.ToFloat64(first), 0, "what the second loop counts is not exported")
	unregistered := prometheus.NewCounter(options)
	require.Same(t, unregistered, Register[prometheus.Counter](nil, unregistered), "without a registry")
}
