package oracle

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// blindTime is how long a list or watch of configuration is refused or hangs before it must show.
const blindTime = 5 * time.Minute

// blindness is what is known of the lists and watches of configuration.
type blindness struct {
	// asked has when a client first asked for a list or a watch of a resource since the last one that was answered.
	asked map[[2]string]time.Time
	// shown means that blindness was judged, so that recovery is judged, too.
	shown bool
}

func newBlindness() blindness { return blindness{asked: map[[2]string]time.Time{}} }

func isBlindable(call *world.Call) bool {
	return isConfig(call.Key.Resource.Plural) && (call.Verb == "list" || call.Verb == "watch") && call.Key.Name == ""
}

func (o *Oracle) noteBlindRequest(call *world.Call) {
	if !isBlindable(call) {
		return
	}
	key := [2]string{call.Client, call.Key.Resource.Plural}
	// Of a watch that is opened there is no answer to see: only what is asked for during a fault surely fails.
	asked, known := o.blindness.asked[key]
	if since, blind := o.blindSince(call.Client, key[1], call.Arrived); blind && (!known || asked.Before(since)) {
		o.blindness.asked[key] = call.Arrived
	}
}

// blindSince returns since when faults, one after another without a gap, keep a client from listing and watching a resource; false if
// none does at this time.
func (o *Oracle) blindSince(client, plural string, now time.Time) (since time.Time, blind bool) {
	blinding := slices.DeleteFunc(slices.Clone(o.faults.spans), func(s *span) bool { return !blinds(s, client, plural) })
	since = now
	for _, s := range blinding {
		if s.open {
			since, blind = earliest(since, s.from), true
		}
	}
	slices.SortFunc(blinding, func(a, b *span) int { return b.from.Compare(a.from) })
	for _, s := range blinding {
		if blind && !s.open && !s.to.Before(since) {
			since = earliest(since, s.from)
		}
	}
	return since, blind
}

// blinds reports whether a fault keeps a client from listing and watching a resource while it lasts.
func blinds(s *span, client, plural string) bool {
	concerned := s.scope == plural || s.scope == "" || isProcessOf(client, s.scope)
	return concerned && (s.kind == "rights" || s.kind == "watch-refused")
}

func (o *Oracle) noteBlindReply(r world.Reply) {
	if isBlindable(r.Call) && r.Failure == nil && r.Status < 300 && !r.Lost {
		delete(o.blindness.asked, [2]string{r.Call.Client, r.Call.Key.Resource.Plural})
	}
}

// judgeVisible is the law "visible": a leader that does not see the configuration says so, and says when it does again.
func (o *Oracle) judgeVisible(client string, families map[string]*dto.MetricFamily, at time.Time) {
	if client != o.leader || !o.faults.up[client] || o.faults.out(client) {
		return
	}
	resource, since := o.blind(client, at)
	switch {
	case resource != "":
		if at.Sub(later(since, o.leaderSince)) >= blindTime {
			o.judgeBlind(client, resource, since, families, at)
		}
	case o.blindness.shown && o.recovered(at):
		o.count("recoveries judged")
		for _, name := range []string{syncedMetric, watchHealthy} {
			if lowest, found := gauge(families[name]); found && lowest == 0 {
				o.violate(at, broken{"visible", client, "not-back"}, "%s is still 0 at %s, although all faults are over", name, o.when(at))
			}
		}
	}
}

// blind returns a resource that a client surely cannot list or watch now, because of a fault, and since when.
func (o *Oracle) blind(client string, now time.Time) (resource string, since time.Time) {
	for _, plural := range []string{"configmaps", "secrets"} {
		asked, is := o.blindness.asked[[2]string{client, plural}]
		if !is {
			continue
		}
		if began, blind := o.blindSince(client, plural, now); blind && !asked.Before(began) {
			return plural, asked
		}
	}
	return "", time.Time{}
}

func (o *Oracle) judgeBlind(client, resource string, since time.Time, families map[string]*dto.MetricFamily, at time.Time) {
	o.count("blindness judged")
	o.blindness.shown = true
	shown := false
	for name, family := range families {
		if name == syncedMetric || strings.HasPrefix(name, watchMetrics) {
			lowest, found := gauge(family)
			shown = shown || found && lowest == 0
		}
	}
	if !shown {
		o.violate(at, broken{"visible", client, "metric"}, "lists and watches of %s fail since %s, but at %s neither %s nor a gauge %s* is 0",
			resource, o.when(since), o.when(at), syncedMetric, watchMetrics)
	}
	for _, warning := range o.events.warnings {
		if warning.at.After(since) {
			return
		}
	}
	o.violate(at, broken{"visible", client, "event"}, "lists and watches of %s fail since %s, but until %s no Warning Event was written",
		resource, o.when(since), o.when(at))
}

// recovered reports whether all faults have been over for long.
func (o *Oracle) recovered(at time.Time) bool {
	for _, s := range o.faults.spans {
		if !s.outage() && (s.open || at.Sub(s.to) < longRecovery) || s.outage() && at.Sub(s.from) < longRecovery {
			return false
		}
	}
	return o.faults.started.IsZero() || at.Sub(o.faults.started) >= longRecovery
}
