package report

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestReloadsAreCountedByNamespaceWhereAskedFor(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		registry := prometheus.NewRegistry()
		m := newMetrics(registry, asked)
		m.reloaded(labels{namespace: "shop", kind: "Deployment"})
		m.reloaded(labels{namespace: "shop", kind: "Deployment"})
		m.reloaded(labels{namespace: "bank", kind: "Deployment"})
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
