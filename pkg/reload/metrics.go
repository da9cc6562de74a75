package reload

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// metrics of the loop. All labels are bounded: kinds, causes, outcomes, reasons; never names.
type metrics struct {
	verdicts, pokes, direct, adoptions, failures *prometheus.CounterVec
	latencies                                    *prometheus.HistogramVec
}

// newMetrics registers the metrics. Those already registered are used as they are.
func newMetrics(reg prometheus.Registerer, oldest func() (since time.Time, count int), now func() time.Time) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return report.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pod_reloader_" + name, Help: help}, labels))
	}
	report.Register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_oldest_due_reload_age_seconds",
		Help: "Age of the oldest reload that is due, or may be due after a change of a config object, and is not done; 0 if there is none.",
	}, func() float64 {
		since, count := oldest()
		if count == 0 {
			return 0
		}
		return now().Sub(since).Seconds()
	}))
	report.Register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_due_reloads",
		Help: "Workloads whose reload is due and not done.",
	}, func() float64 {
		_, count := oldest()
		return float64(count)
	}))
	return &metrics{
		verdicts:  counter("verdicts_total", "Verdicts other than nothing (reload, hold, adopt), by reason: created, modified, deleted, several; unknown or foreign-key for adopt.", "verdict", "reason"),
		pokes:     counter("pokes_total", "Reload requests to the webhook, by outcome.", "outcome"),
		direct:    counter("direct_writes_total", "Templates stamped by the loop itself, because no webhook answered or in direct mode.", "kind"),
		adoptions: counter("adoptions_total", "Records written without a restart: the current configuration was adopted as the running one.", "kind"),
		failures:  counter("retries_total", "Failed attempts that are retried, by reason.", "reason"),
		latencies: report.Register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pod_reloader_reload_duration_seconds",
			Help:    "Time from the watch event of a config object to the stamped template, gates included.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 7.5, 10, 30, 60, 300},
		}, []string{"kind"})),
	}
}

func (m *metrics) poked(outcome poke.Outcome) { m.pokes.WithLabelValues(string(outcome)).Inc() }

func (m *metrics) wroteDirectly(kind workload.Kind) { m.direct.WithLabelValues(kind.Kind).Inc() }

func (m *metrics) adopted(kind workload.Kind) { m.adoptions.WithLabelValues(kind.Kind).Inc() }

func (m *metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }

func (m *metrics) latency(kind workload.Kind, d time.Duration) {
	m.latencies.WithLabelValues(kind.Kind).Observe(d.Seconds())
}

// verdict counts a decision that was not routine. What it counts is bounded: actions and types of changes.
func (m *metrics) verdict(v policy.Verdict) {
	action, reason := string(v.Action), changeTypes(v.Changes)
	switch {
	case v.Action != policy.Nothing:
	case v.Foreign != "":
		action, reason = "adopt", "foreign-key"
	case len(v.Adopt) > 0:
		action, reason = "adopt", "unknown"
	default:
		return
	}
	m.verdicts.WithLabelValues(action, reason).Inc()
}

// changeTypes returns the type that all Changes have, or several.
func changeTypes(changes []policy.Change) string {
	reason := ""
	for i, c := range changes {
		if i > 0 && string(c.Type) != reason {
			return "several"
		}
		reason = string(c.Type)
	}
	return reason
}
