package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// values gathers the metrics of a chain, by name and reason.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return all
}

func TestMetricsCountWhatIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		registry := prometheus.NewRegistry()
		require.NoError(t, w.Register(registry))
		assert.Empty(t, values(t, registry), "there is no graph")
		w.graph()
		first := values(t, registry)
		for _, reason := range referent.Reasons() {
			held, ok := first["pod_reloader_referent_held "+string(reason)]
			assert.True(t, ok, reason)
			assert.Zero(t, held, reason)
		}
		assert.InDelta(t, 3, first["pod_reloader_referents"], 0)

		w.put(services, "s", map[string]any{"secret": "absent"})
		w.put(services, "invalid", map[string]any{"secret": "A/B"})
		w.pass(time.Second)
		held := values(t, registry)
		assert.InDelta(t, 1, held["pod_reloader_referent_held missing"], 0, "the cause, and not what is above it")
		assert.InDelta(t, 1, held["pod_reloader_referent_held invalid"], 0)
		assert.InDelta(t, 4, held["pod_reloader_referents"], 0)
		assert.Greater(t, held["pod_reloader_referent_evaluations_total"], first["pod_reloader_referent_evaluations_total"])

		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		assert.Zero(t, values(t, registry)["pod_reloader_referent_held missing"])
		before := values(t, registry)["pod_reloader_referent_evaluations_total"]
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		assert.InDelta(t, before, values(t, registry)["pod_reloader_referent_evaluations_total"], 0, "nothing that counts has changed")
	})
}
