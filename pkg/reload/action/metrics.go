package action

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// metrics are those of the writes. All labels are bounded: kinds, outcomes, reasons; never names.
type metrics struct {
	pokes, direct, adoptions, failures *prometheus.CounterVec
	latencies                          *prometheus.HistogramVec
}

// newMetrics registers the metrics.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: "pod_reloader_" + name, Help: help}, labels)
	}
	return &metrics{
		pokes:     counter("reload_requests_total", "Reload requests to the webhook, by outcome.", "outcome"),
		direct:    counter("direct_writes_total", "Templates stamped by the loop itself, because no webhook answered or in direct mode.", "kind"),
		adoptions: counter("adoptions_total", "Records written without a restart: the current configuration was adopted as the running one.", "kind"),
		failures:  counter("retries_total", "Failed attempts that are retried, by reason.", "reason"),
		latencies: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pod_reloader_reload_duration_seconds",
			Help:    "Time from the watch event of a config object to the stamped template, gates included.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 7.5, 10, 30, 60, 300},
		}, []string{"kind"}),
	}
}

func (m *metrics) poked(outcome poke.Outcome) { m.pokes.WithLabelValues(string(outcome)).Inc() }

// join exports 0 direct writes of a kind: for Prometheus, a series that begins with its first writes has not increased by them.
func (m *metrics) join(kind workload.Kind) { m.direct.WithLabelValues(kind.Kind) }

func (m *metrics) wroteDirectly(kind workload.Kind) { m.direct.WithLabelValues(kind.Kind).Inc() }

func (m *metrics) adopted(kind workload.Kind) { m.adoptions.WithLabelValues(kind.Kind).Inc() }

func (m *metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }

func (m *metrics) latency(kind workload.Kind, d time.Duration) {
	m.latencies.WithLabelValues(kind.Kind).Observe(d.Seconds())
}
