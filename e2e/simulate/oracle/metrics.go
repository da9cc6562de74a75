package oracle

import (
	"sort"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	reloadsMetric = "pod_reloader_reloads_total"
	syncedMetric  = "pod_reloader_cache_synced"
	watchMetrics  = "pod_reloader_watch_"
	watchHealthy  = "pod_reloader_watch_healthy"
)

// metrics has what the replicas say of themselves.
type metrics struct {
	// reloads and before are the counters of each process: the last value, and what it had before it began anew.
	reloads, before map[string]float64
	scraped         map[string]time.Time
	// crashed means that a replica did not work for a while: what it had counted may be lost.
	crashed bool
}

func newMetrics() metrics {
	return metrics{reloads: map[string]float64{}, before: map[string]float64{}, scraped: map[string]time.Time{}}
}

// Metrics takes note of the metrics of a replica.
func (o *Oracle) Metrics(client string, families map[string]*dto.MetricFamily, at time.Time) {
	o.advance(at)
	o.count("scrapes")
	sum := 0.0
	for _, metric := range families[reloadsMetric].GetMetric() {
		sum += metric.GetCounter().GetValue()
	}
	m := &o.metrics
	if sum < m.reloads[client] {
		m.before[client] += m.reloads[client]
	}
	m.reloads[client], m.scraped[client] = sum, at
	o.judgeVisible(client, families, at)
}

// judgeMetrics is the law "explained" for the metric: it counts each reload once.
func (o *Oracle) judgeMetrics(now time.Time) { //nolint:gocyclo // a list of cases, each with its own reason
	m := &o.metrics
	if len(m.scraped) == 0 {
		return
	}
	least, most := 0, 0
	excused := false
	var last time.Time
	for _, w := range o.all {
		least += w.story.restarts
		most += max(len(w.story.announced), w.story.restarts)
		excused = excused || w.story.restarts > 0 && o.excusedFromAnnouncing(w, now)
		last = later(last, w.story.last)
	}
	clients := make([]string, 0, len(m.scraped))
	for client := range m.scraped {
		clients = append(clients, client)
	}
	sort.Strings(clients)
	sum := 0.0
	for _, client := range clients {
		sum += m.reloads[client] + m.before[client]
		excused = excused || m.scraped[client].Sub(last) < recovery
	}
	for client, up := range o.faults.up {
		_, scraped := m.scraped[client]
		excused = excused || up && !scraped
	}
	o.count("metrics judged")
	if sum > float64(most) {
		o.violate(now, broken{"explained", reloadsMetric, "metric-doubled"}, "the replicas %s count %v reloads, but only %d were made",
			strings.Join(clients, ", "), sum, most)
	}
	if !excused && !m.crashed && sum < float64(least) {
		o.violate(now, broken{"explained", reloadsMetric, "metric-missing"}, "the replicas %s count %v reloads, but %d were made",
			strings.Join(clients, ", "), sum, least)
	}
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
