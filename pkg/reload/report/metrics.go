package report

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// metrics count what is reported. All labels are bounded: kinds, causes, statuses; never names, but for byNamespace.
type metrics struct {
	reloads *prometheus.CounterVec
	// byNamespace is nil unless reloads are counted by namespace.
	byNamespace *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, byNamespace bool) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: "pod_reloader_" + name, Help: help}, labels)
	}
	m := &metrics{
		reloads: counter("reloads_total", "Workloads stamped, by kind of workload and kind of config object that caused it (several; or the cause where no object changed).", "kind", "cause"),
	}
	if byNamespace { // as Reloader does, where it is asked for
		m.byNamespace = counter("namespace_reloads_total", "Workloads stamped, by namespace; only with METRICS_COUNT_BY_NAMESPACE=enabled.", "namespace")
	}
	return m
}

// labels are those of a reload in the metrics.
type labels struct{ namespace, kind, cause string }

func labelsOf(s Subject, reload record.LastReload) labels {
	return labels{namespace: s.Key.Namespace, kind: s.Object.Kind.Kind, cause: causeKinds(reload)}
}

// join exports 0 reloads of a kind by the usual causes: for Prometheus, a series that begins with its first reload has not increased by it.
func (m *metrics) join(kind workload.Kind) {
	for _, cause := range []reference.Kind{reference.ConfigMap, reference.Secret} {
		m.reloads.WithLabelValues(kind.Kind, string(cause))
	}
}

func (m *metrics) reloaded(l labels) {
	m.reloads.WithLabelValues(l.kind, l.cause).Inc()
	if m.byNamespace != nil {
		m.byNamespace.WithLabelValues(l.namespace).Inc()
	}
}
