package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// watchMetrics are the metrics of the watches. Their labels are bounded by the kinds and, with --namespaces, the namespaces
// that the installation handles.
type watchMetrics struct {
	monitor           *watchhealth.Monitor
	healthy, failures *prometheus.Desc
}

var _ prometheus.Collector = watchMetrics{}

func newWatchMetrics(monitor *watchhealth.Monitor) watchMetrics {
	return watchMetrics{
		monitor: monitor,
		healthy: prometheus.NewDesc("pod_reloader_watch_healthy",
			"1 if the list and watch of a resource work; 0 if they are refused, unanswered or silent. The namespace is empty for all namespaces.",
			[]string{"resource", "namespace"}, nil),
		failures: prometheus.NewDesc("pod_reloader_watch_failures_total",
			"Lists and watches that failed, by reason: refused, failed, no-answer, silent, incomplete.",
			[]string{"resource", "reason"}, nil),
	}
}

// Describe is for prometheus.Collector.
func (w watchMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- w.healthy
	descriptions <- w.failures
}

// Collect is for prometheus.Collector.
func (w watchMetrics) Collect(values chan<- prometheus.Metric) {
	for _, s := range w.monitor.Statuses() {
		value := 0.0
		if s.Healthy() {
			value = 1
		}
		values <- prometheus.MustNewConstMetric(w.healthy, prometheus.GaugeValue, value, s.Resource, s.Namespace)
	}
	for failure, n := range w.monitor.Failures() {
		values <- prometheus.MustNewConstMetric(w.failures, prometheus.CounterValue, float64(n), failure.Resource, string(failure.Reason))
	}
}
