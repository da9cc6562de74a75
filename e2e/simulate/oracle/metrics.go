package oracle

import (
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	reloadsMetric = "pod_reloader_reloads_total"
	syncedMetric  = "pod_reloader_cache_synced"
	watchHealthy  = "pod_reloader_watch_healthy"
)

// metrics has what the replicas say of themselves.
type metrics struct {
	// reloads and before are the counters of each process: the last value, and what it had before it began anew.
	reloads, before map[string]float64
	scraped         map[string]time.Time
}

func newMetrics() metrics {
	return metrics{reloads: map[string]float64{}, before: map[string]float64{}, scraped: map[string]time.Time{}}
}

// gauge returns the lowest value of a gauge.
func gauge(family *dto.MetricFamily) (lowest float64, found bool) {
	for _, metric := range family.GetMetric() {
		if metric.GetGauge() == nil {
			continue
		}
		if value := metric.GetGauge().GetValue(); !found || value < lowest {
			lowest, found = value, true
		}
	}
	return lowest, found
}
