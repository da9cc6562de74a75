package oracle

import (
	"time"

	dto "github.com/prometheus/client_model/go"
)

// panicsMetric counts the admission requests whose decision or read panicked.
const panicsMetric = "pod_reloader_webhook_panics_total"

// aliveLaw is the law "alive" for the metrics of a replica: a panic that the program recovers from is a defect, too.
type aliveLaw struct {
	*ledger
	passive
}

func (l *aliveLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	for _, metric := range families[panicsMetric].GetMetric() {
		if n := metric.GetCounter().GetValue(); n > 0 {
			l.violate(at, broken{"alive", client, "panic"}, "the webhook of %s has panicked %v times until %s", client, n, l.when(at))
		}
	}
}
