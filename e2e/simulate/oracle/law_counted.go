package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// countedLaw is the law "explained" for the metric of reloads.
type countedLaw struct {
	*ledger
	passive

	explained   *explainedLaw
	recreations *jobsLaw
	metrics     metrics
	takeovers   []takeover
}

// takeover is the begin of a new leader, with the reloads that have no Event yet: it finds out by its clock and the time in the annotation
// whether an earlier leader has counted them.
type takeover struct {
	by string
	at time.Time
	// reloads is how many there are, misdated how many of them a wrong clock has dated.
	reloads, misdated int
	// recent is how many reloads with an Event there may be from the last countedAfter: where the new leader can neither list nor write
	// Events, it counts them again.
	recent int
	// late is how many reloads without an Event are too old for it to count, of those that the leader before had no time to count.
	late int
}

// countedAfter is when a leader counts a reload whose Event it is not allowed to write.
const countedAfter = 5 * time.Minute

func newCountedLaw(l *ledger, explained *explainedLaw, recreations *jobsLaw) *countedLaw {
	return &countedLaw{ledger: l, explained: explained, recreations: recreations, metrics: newMetrics()}
}

// scraped records the metrics of a replica.
func (l *countedLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	sum := 0.0
	for _, metric := range families[reloadsMetric].GetMetric() {
		sum += metric.GetCounter().GetValue()
	}
	m := &l.metrics
	if sum < m.reloads[client] {
		m.before[client] += m.reloads[client]
	}
	m.reloads[client], m.scraped[client] = sum, at
}

// succeeded records the reloads that a new leader takes over.
func (l *countedLaw) succeeded() {
	t := takeover{by: l.leader, at: l.leaderSince}
	for _, w := range l.all {
		n := max(w.story.reportable()-l.reloadsReported(w), 0)
		t.reloads += n
		t.misdated += min(n, w.story.misdated)
		if l.leaderSince.Sub(w.story.last) < countedAfter {
			t.recent += w.story.reportable() - n
		}
		due := w.story.first.Add(countedAfter)
		ended, over := l.faults.ended[l.predecessor]
		if !l.leaderSince.Before(due) && over && ended.Before(due.Add(recovery)) {
			t.late += n
		}
	}
	l.takeovers = append(l.takeovers, t)
}

// misjudged returns how many reloads later leaders may rightly not have counted, and how many they may have counted again. A leader may
// misjudge where a clock was wrong, and where nothing says whether an earlier leader has counted. It may also do so where requests were
// refused now and then: that looks like the lack of the permission to write Events.
func (l *countedLaw) misjudged() (missing, doubled int) {
	for _, t := range l.takeovers {
		unclear := t.misdated
		if l.faults.clockWrongOf(t.by, t.at, t.at.Add(recovery)) {
			unclear = t.reloads
		}
		missing, doubled = missing+max(unclear, t.late), doubled+unclear
		if l.faults.deniedWithin(t.at, t.at.Add(countedAfter)) {
			doubled += t.recent
		}
	}
	doubled += l.countedByBoth()
	if missing > 0 || doubled > 0 {
		l.count("counts excused: a clock was wrong, a leader came late or was refused")
	}
	return missing, doubled
}

// quiet is the law "explained" for the metric: it counts each reload once.
func (l *countedLaw) quiet(now time.Time) {
	m := &l.metrics
	if len(m.scraped) == 0 {
		return
	}
	least, most := -l.uncounted(), 0
	for _, w := range l.all {
		if !l.explained.mayLackEvent(w, now) {
			least += max(w.story.restarts-l.explained.unreportable(w), 0)
		}
		most += w.story.reportable()
	}
	missing, doubled := l.misjudged()
	least -= missing
	most += l.recreations.recreated + doubled + l.events.lost
	clients := slices.Sorted(maps.Keys(m.scraped))
	sum := 0.0
	for _, client := range clients {
		sum += m.reloads[client] + m.before[client]
	}
	l.count("metrics judged")
	if l.judgeCounted(sum, clients, now) {
		return
	}
	if sum > float64(most) {
		l.violate(now, broken{"explained", reloadsMetric, "metric-doubled" + l.doubledUnder(l.all...)},
			"the replicas %s count %v reloads, but only %d were made",
			strings.Join(clients, ", "), sum, most)
	}
	if sum < float64(least) && !l.excusedFromCounting() {
		l.violate(now, broken{"explained", reloadsMetric, "metric-missing" + l.missedUnder(l.all...)},
			"the replicas %s count %v reloads, but at least %d are to be counted",
			strings.Join(clients, ", "), sum, least)
	}
}

// uncounted returns how many reloads may have an Event and no count: a process writes the Event first, and may end before it counts. The
// answer may not have reached it for as long as it did not work, or as requests failed.
func (l *countedLaw) uncounted() int {
	from := map[string]time.Time{}
	for client, at := range l.faults.ended {
		from[client] = l.faults.disturbedSince(at).Add(-recovery)
	}
	n := 0
	for _, t := range l.events.writes {
		if begin, ended := from[t.client]; ended && t.at.After(begin) {
			n++
		}
	}
	return n
}

// judgeCounted compares with the Events: without faults, a reload that an Event reports is counted, too.
func (l *countedLaw) judgeCounted(sum float64, clients []string, now time.Time) (broke bool) {
	events := 0
	for _, w := range l.all {
		events += l.reloadsReported(w)
	}
	broke = sum < float64(events) && l.faults.never()
	if broke {
		l.violate(now, broken{"explained", reloadsMetric, "not-counted"}, "the replicas %s count %v reloads, but %d Events report one",
			strings.Join(clients, ", "), sum, events)
	}
	return broke
}

// excusedFromCounting reports whether a reload may rightly not be counted, or not yet, or by a replica that was not scraped.
func (l *countedLaw) excusedFromCounting() bool {
	m := &l.metrics
	var last time.Time
	for _, w := range l.all {
		last = later(last, w.story.last)
	}
	for _, at := range m.scraped {
		if at.Sub(last) < recovery {
			return true
		}
	}
	for client, up := range l.faults.up {
		if _, scraped := m.scraped[client]; up && !scraped {
			return true
		}
	}
	return false
}
