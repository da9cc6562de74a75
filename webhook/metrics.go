package webhook

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// ruleNone is the rule of requests that no rule looks at: another kind, a sub-resource, out of scope, or no review.
const ruleNone = "none"

// The outcomes of requests.
const (
	// outcomeUnchanged: allowed as it is.
	outcomeUnchanged = "unchanged"
	// outcomePatched: allowed with our annotations put right; no pod restarts for it.
	outcomePatched = "patched"
	// outcomeStamped: allowed with a new stamp on the template.
	outcomeStamped = "stamped"
	// outcomeRejected: the digest of a new dummy did not match.
	outcomeRejected = "rejected"
	// outcomeUnverified: the digest of a new dummy could not be compared.
	outcomeUnverified = "unverified"
	// outcomeUnread: the configuration could not be read; allowed with the annotations from before.
	outcomeUnread = "unread"
	// outcomePanicked: a defect of ours; allowed as it is.
	outcomePanicked = "panicked"
	// outcomeBusy: too many requests at the same time, or a workload that is too large; allowed as it is, or not even read.
	outcomeBusy = "busy"
	// outcomeMalformed: no admission review.
	outcomeMalformed = "malformed"
)

// metrics are those of the handler. Their labels have few values: rules and outcomes, never names of objects.
type metrics struct {
	decisions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	panics    prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_reloader_webhook_decisions_total",
			Help: "Admission requests, by rule and outcome.",
		}, []string{"rule", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pod_reloader_webhook_duration_seconds",
			Help:    "Time from the arrival of an admission request to its decision, live reads included.",
			Buckets: []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5},
		}, []string{"rule"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pod_reloader_webhook_panics_total",
			Help: "Admission requests whose decision, or read of ConfigMaps and Secrets, panicked; report each as a defect.",
		}),
	}
}

func (m *metrics) register(to prometheus.Registerer) error {
	return errors.Join(to.Register(m.decisions), to.Register(m.duration), to.Register(m.panics))
}
