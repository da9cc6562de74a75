package chain

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// collector reads its values when it is asked for them.
type collector struct {
	graphState  *graphState
	count       *atomic.Int64 // of digests that could not be written
	held, nodes *prometheus.Desc
	evaluations *prometheus.Desc
	unpublished *prometheus.Desc
}

var _ prometheus.Collector = collector{}

// Register adds the metrics of a Chain to a registry.
func (c *Chain) Register(registry prometheus.Registerer) error {
	return registry.Register(collector{
		graphState: c.graphState, count: &c.evaluator.publisher.unpublished.count,
		held:  prometheus.NewDesc("pod_reloader_referent_held", "Objects that cause custom resources to be held, by reason.", []string{"reason"}, nil),
		nodes: prometheus.NewDesc("pod_reloader_referents", "Objects in the graph of custom resources.", nil, nil),
		evaluations: prometheus.NewDesc("pod_reloader_referent_evaluations_total",
			"Evaluations of objects in the graph of custom resources: of those that have changed, and of those above them.", nil, nil),
		unpublished: prometheus.NewDesc("pod_reloader_referent_unpublished",
			"Custom resources whose digest could not be written into them, of those that the configuration publishes; 0 on a replica that does not lead.", nil, nil),
	})
}

// Describe describes the metrics.
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.held
	descriptions <- c.nodes
	descriptions <- c.evaluations
	descriptions <- c.unpublished
}

// Collect counts. Without a graph there is nothing to count.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	c.graphState.mu.RLock()
	defer c.graphState.mu.RUnlock()
	if c.graphState.graph == nil {
		return
	}
	held := c.graphState.graph.Held()
	for _, reason := range referent.Reasons() {
		metrics <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(held[reason]), string(reason))
	}
	metrics <- prometheus.MustNewConstMetric(c.nodes, prometheus.GaugeValue, float64(c.graphState.graph.Len()))
	metrics <- prometheus.MustNewConstMetric(c.evaluations, prometheus.CounterValue, float64(c.graphState.evaluations))
	metrics <- prometheus.MustNewConstMetric(c.unpublished, prometheus.GaugeValue, float64(c.count.Load()))
}
