package oracle

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

func TestAlive(t *testing.T) {
	t.Parallel()
	counted := func(name string, n float64) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.oracle.Metrics(replica, map[string]*dto.MetricFamily{
				name: {Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &n}}}},
			}, s.now)
		}
	}
	runLaw(t, "alive", map[string]lawCase{
		"no panic of the webhook": {because: "the counter is 0", happens: counted(panicsMetric, 0)},
		"a panic of the webhook":  {want: "alive/panic", because: "the counter is 1", happens: counted(panicsMetric, 1)},
		"another counter":         {because: "it counts something else", happens: counted("pod_reloader_webhook_total", 1)},
	})
}
