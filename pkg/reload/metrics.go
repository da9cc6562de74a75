package reload

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// metrics of the loop. All labels are bounded: kinds, causes, outcomes, reasons; never names.
type metrics struct {
	verdicts *prometheus.CounterVec
}

// newMetrics registers the metrics.
func newMetrics(reg prometheus.Registerer, oldest func() (since time.Time, count int), now func() time.Time) *metrics {
	auto := promauto.With(reg)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_oldest_due_reload_age_seconds",
		Help: "Age of the oldest reload that is due, or may be due after a change of a config object, and is not done; 0 if there is none.",
	}, func() float64 {
		since, count := oldest()
		if count == 0 {
			return 0
		}
		return max(now().Sub(since), 0).Seconds() // a reload that --refractory holds back becomes due later
	})
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_due_reloads",
		Help: "Workloads whose reload is due and not done.",
	}, func() float64 {
		_, count := oldest()
		return float64(count)
	})
	return &metrics{auto.NewCounterVec(prometheus.CounterOpts{
		Name: "pod_reloader_verdicts_total",
		Help: "Decisions to reload, hold or adopt, by reason: created, modified, deleted, several; unknown or foreign-key for adopt.",
	}, []string{"verdict", "reason"})}
}

// verdict counts a decision that was not routine, by what was known. What it counts is bounded: actions and types of changes. A hash that is
// known alone may be another program's, such as SAP's: nothing is recorded under its key.
func (m *metrics) verdict(known policy.Known, v policy.Verdict) {
	action, reason := string(v.Action), changeTypes(v.Changes)
	switch {
	case v.Action != policy.Nothing:
	case v.Foreign != "" && known.Hash == "":
		action, reason = "adopt", "foreign-key"
	case v.Foreign != "", len(v.Adopt) > 0:
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
