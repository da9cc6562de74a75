package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	reloadsMetric = "pod_reloader_reloads_total"
	syncedMetric  = "pod_reloader_cache_synced"
	watchHealthy  = "pod_reloader_watch_healthy"
)

// metrics has what the replicas say of themselves.
type metrics struct {
	// reloads and before are the counters of each process: the last value, and what it had before it began anew.
	reloads, before map[string]float64
	scraped         map[string]time.Time
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
	o.judgeDeniedMetric(client, families, at)
}

// judgeMetrics is the law "explained" for the metric: it counts each reload once.
func (o *Oracle) judgeMetrics(now time.Time) {
	m := &o.metrics
	if len(m.scraped) == 0 {
		return
	}
	least, most := -o.uncounted(), 0
	for _, w := range o.all {
		least += w.story.restarts - o.unreportable(w)
		most += w.story.reportable()
	}
	most += o.jobs.recreated
	clients := slices.Sorted(maps.Keys(m.scraped))
	sum := 0.0
	for _, client := range clients {
		sum += m.reloads[client] + m.before[client]
	}
	o.count("metrics judged")
	if o.judgeCounted(sum, clients, now) {
		return
	}
	if sum > float64(most) {
		o.violate(now, broken{"explained", reloadsMetric, "metric-doubled" + o.doubledUnder(o.all...)}, "the replicas %s count %v reloads, but only %d were made",
			strings.Join(clients, ", "), sum, most)
	}
	if sum < float64(least) && !o.excusedFromCounting(now) {
		o.violate(now, broken{"explained", reloadsMetric, "metric-missing" + o.missedUnder(o.all...)}, "the replicas %s count %v reloads, but at least %d are to be counted",
			strings.Join(clients, ", "), sum, least)
	}
}

// uncounted returns how many reloads may have an Event and no count: a process writes the Event first, and may end before it counts. The
// answer may not have reached it for as long as it did not work, or as requests failed.
func (o *Oracle) uncounted() int {
	from := map[string]time.Time{}
	for client, at := range o.faults.ended {
		from[client] = o.faults.disturbedSince(at).Add(-recovery)
	}
	n := 0
	for _, t := range o.events.writes {
		if begin, ended := from[t.client]; ended && t.at.After(begin) {
			n++
		}
	}
	return n
}

// disturbedSince returns since when faults that may keep an answer from a process have lasted, or followed one another within a minute.
func (t *timeline) disturbedSince(at time.Time) time.Time {
	for _, s := range slices.Backward(t.spans) {
		switch s.kind {
		case "down", "webhook-away", "namespace-webhook", "clock", "watch-held", "watch-refused":
			continue
		}
		if s.from.Before(at) && (s.open || !s.to.Before(at.Add(-recovery))) {
			at = s.from
		}
	}
	return at
}

// judgeCounted compares with the Events: without faults, a reload that an Event reports is counted, too.
func (o *Oracle) judgeCounted(sum float64, clients []string, now time.Time) (broke bool) {
	events := 0
	for _, w := range o.all {
		events += o.reloadsReported(w)
	}
	broke = sum < float64(events) && o.faults.never()
	if broke {
		o.violate(now, broken{"explained", reloadsMetric, "not-counted"}, "the replicas %s count %v reloads, but %d Events report one",
			strings.Join(clients, ", "), sum, events)
	}
	return broke
}

// excusedFromCounting reports whether a reload may rightly not be counted, or not yet, or by a replica that was not scraped.
func (o *Oracle) excusedFromCounting(now time.Time) bool {
	m := &o.metrics
	var last time.Time
	for _, w := range o.all {
		last = later(last, w.story.last)
		if w.story.restarts > 0 && o.mayLackEvent(w, now) {
			return true
		}
	}
	for _, at := range m.scraped {
		if at.Sub(last) < recovery {
			return true
		}
	}
	for client, up := range o.faults.up {
		if _, scraped := m.scraped[client]; up && !scraped {
			return true
		}
	}
	return false
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
