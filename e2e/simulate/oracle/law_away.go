package oracle

import (
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// kindAway is the kind of a fault by which a custom kind of workloads, its Scope, is not installed: its workloads are gone. By
	// kindContradicted, discovery shows a kind that is served nowhere else.
	kindAway, kindContradicted = "kind-away", "kind-contradicted"
	// forgotten is how long a kind may be away until the program, which looks it up twice, takes its workloads for gone.
	forgotten = time.Minute
)

// takesKind reports whether a fault keeps the program from all that is about the workloads of a kind, and from nothing else.
func (s *span) takesKind() bool { return s.kind == kindAway || s.kind == kindContradicted }

// isAway reports whether the kind of a contradiction is not installed at all at present, by another fault: then it is no contradiction.
func (t *timeline) isAway(contradiction *span) bool {
	return contradiction.kind == kindContradicted && slices.ContainsFunc(t.spans, func(s *span) bool {
		return s.open && s.kind == kindAway && s.scope == contradiction.scope
	})
}

// shows returns since when a fault is one that fails. A contradiction is so since discovery has shown the kind again.
func (t *timeline) shows(fault *span) time.Time {
	since := fault.from
	for _, s := range t.spans {
		if fault.kind == kindContradicted && s.kind == kindAway && s.scope == fault.scope && !s.open {
			since = later(since, s.to)
		}
	}
	return since
}

// awayLaw is the law about a kind of workloads that is not installed any more: they are gone, and that is no failure.
type awayLaw struct {
	*ledger
	passive
}

// away returns since when a kind of workloads is not installed, where nothing else has disturbed the program since shortly before that: it
// looks the kind up ever more rarely where it has come back just before.
func (l *awayLaw) away(plural string) (since time.Time, is bool) {
	for _, s := range l.faults.spans {
		if s.open && s.kind == kindAway && s.scope == plural && (!is || s.from.Before(since)) {
			since, is = s.from, true
		}
	}
	alone := is && l.faults.started.Before(since) && !slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		return s.open && s.kind != kindAway || !s.open && s.to.Add(s.recovery()).After(since)
	})
	return since, alone
}

// request is the law "prompt" for workloads that are gone with their kind: the program writes none of them.
func (l *awayLaw) request(call *world.Call) {
	if !call.Write() || !l.isProgram(call) {
		return
	}
	since, away := l.away(call.Key.Resource.Plural)
	if !away || call.Arrived.Sub(since) < forgotten {
		return
	}
	l.violate(call.Arrived, broken{"prompt", idOf(call.Key).String(), "away"},
		"its kind is not installed since %s, so that it is gone, but %s sends a %s at %s",
		l.when(since), call.Client, call.Verb, l.when(call.Arrived))
}

// stored is the law "visible" for an Event about a watch of what is not installed: that is no failure.
func (l *awayLaw) stored(c world.Commit) {
	if c.New == nil || !l.isProgram(c.Call) || world.Text(c.New, "reason") != "WatchFailing" {
		return
	}
	since, away := l.away(rollouts)
	if away && l.saysOf(noteOf(c.New), rollouts) {
		l.violate(c.At, broken{"visible", rollouts, "not-installed"},
			"an Event says at %s that a watch fails whose kind is not installed since %s, which is no failure: %s",
			l.when(c.At), l.when(since), noteOf(c.New))
	}
}

// scraped is the law "visible" for the metric of the watch.
func (l *awayLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	since, away := l.away(rollouts)
	if !away || at.Sub(since) < forgotten || !l.leads(client) || !l.faults.up[client] {
		return
	}
	l.count("metrics of a kind that is away judged")
	if l.shownAsBlind(families, rollouts) {
		l.violate(at, broken{"visible", client, "not-installed"},
			"%s or %s of %s is 0 at %s, but the kind is not installed since %s, which is no failure",
			syncedMetric, watchHealthy, rollouts, l.when(at), l.when(since))
	}
}
