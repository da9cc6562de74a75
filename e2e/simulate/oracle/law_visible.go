package oracle

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A list or a watch must be reported when it has failed for a minute and a half, and an Event may wait for another minute: that is
// blindTime. One without an answer fails after unanswered.
const (
	blindTime  = 90*time.Second + time.Minute
	unanswered = 70 * time.Second
)

// visibleLaw is the law "visible" for watches.
type visibleLaw struct {
	*ledger
	passive

	// asked has when a client first asked for a list or a watch of a resource since the last one that was answered.
	asked map[[2]string]time.Time
	// shown means that blindness was judged, so that recovery is judged, too.
	shown bool
}

func newVisibleLaw(l *ledger) *visibleLaw {
	return &visibleLaw{ledger: l, asked: map[[2]string]time.Time{}}
}

func (l *visibleLaw) owes(now time.Time) bool { return l.shown && !l.recovered(now) }

func isBlindable(call *world.Call) bool {
	return isWatched(call.Key.Resource.Plural) && (call.Verb == "list" || call.Verb == "watch") && call.Key.Name == ""
}

// isOwnList reports whether a request lists Secrets of the installation, where it looks at no others: such a list, of the manifests of
// Jobs, belongs to no watch.
func (l *rules) isOwnList(call *world.Call) bool {
	return call.Verb == "list" && l.options.Hidden.fromAll(call.Key.Resource.Plural) && call.Key.Namespace == l.options.KeySecret.Namespace
}

// isNamed reports whether a watch is named as one of a resource, with its group or without. Where nothing looks at the resource, single
// objects of the installation are watched, such as secrets/pod-reloader-digest-key.
func (l *rules) isNamed(watch, resource string) bool {
	name, _, _ := strings.Cut(watch, ".")
	return name == resource || l.options.Hidden.fromAll(resource) && strings.HasPrefix(name, resource+"/")
}

// isWatched reports whether what the program may have to watch of a resource shows all changes: configuration, workloads, custom resources
// below them, and the namespaces whose labels decide about scope. Only what a client asks for is judged.
func isWatched(plural string) bool { return watchedKind(plural) != "" }

// watchedKind says what a resource is to the program; empty for one whose watch shows none of the changes that matter.
func watchedKind(plural string) string {
	switch {
	case isConfig(plural):
		return "configuration"
	case world.TemplatePath(plural) != nil:
		return "workloads"
	case isReferent(plural):
		return "custom resources"
	case plural == "namespaces":
		return plural
	}
	return ""
}

func (l *visibleLaw) request(call *world.Call) {
	if !l.isProgram(call) || !isBlindable(call) || l.isOwnList(call) {
		return
	}
	key := [2]string{call.Client, call.Key.Resource.Plural}
	// Of a watch that is opened there is no answer to see: only what is asked for during a fault surely fails.
	asked, known := l.asked[key]
	if since, blind := l.blindSince(call.Client, key[1], call.Arrived); blind && (!known || asked.Before(since)) {
		l.asked[key] = call.Arrived
	}
}

// blindSince returns since when faults, one after another without a gap, keep a client from watching a resource; false if
// none does at this time.
func (l *visibleLaw) blindSince(client, plural string, now time.Time) (since time.Time, blind bool) {
	blinding := slices.DeleteFunc(slices.Clone(l.faults.spans), func(s *span) bool { return !blinds(s, client, plural) || l.faults.isAway(s) })
	since = now
	for _, s := range blinding {
		if s.open {
			since, blind = earliest(since, l.faults.shows(s)), true
		}
	}
	slices.SortFunc(blinding, func(a, b *span) int { return b.from.Compare(a.from) })
	for _, s := range blinding {
		if blind && !s.open && !s.to.Before(since) {
			since = earliest(since, l.faults.shows(s))
		}
	}
	return since, blind
}

// blinds reports whether a fault keeps a client from watching a resource while it lasts. One without a scope is about configuration,
// custom resources included.
func blinds(s *span, client, plural string) bool {
	concerned := s.scope == plural || s.scope == "" && (isConfig(plural) || isReferent(plural)) ||
		isConfig(plural) && isProcessOf(client, s.scope)
	return concerned && (s.kind == "permissions" || s.kind == "watch-refused" || s.kind == kindContradicted)
}

// reply records an answer. A list that is answered while watches fail shows the moment, and not what comes.
func (l *visibleLaw) reply(r world.Reply) {
	if !l.isProgram(r.Call) || !isBlindable(r.Call) || r.Failure != nil || r.Status >= 300 || r.Lost {
		return
	}
	if _, blind := l.blindSince(r.Call.Client, r.Call.Key.Resource.Plural, r.At); r.Call.Verb == "watch" || !blind {
		delete(l.asked, [2]string{r.Call.Client, r.Call.Key.Resource.Plural})
	}
}

// scraped is the law "visible": a leader that does not see what it must watch says so, and says when it does again.
func (l *visibleLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	if !l.leads(client) || !l.faults.up[client] || l.faults.out(client) {
		return
	}
	blind := l.blind(client, at)
	for _, watch := range blind {
		if at.Sub(later(watch.since, l.leaderSince)) >= l.patience() {
			l.judgeBlind(client, watch, families, at)
		}
	}
	if len(blind) > 0 || !l.shown || !l.recovered(at) {
		return
	}
	l.count("recoveries judged")
	for _, name := range []string{syncedMetric, watchHealthy} {
		if lowest, found := gauge(families[name]); found && lowest == 0 {
			l.violate(at, broken{"visible", client, "not-back"}, "%s is still 0 at %s, although all faults are over", name, l.when(at))
		}
	}
}

// patience returns how long a list or a watch may fail before it must show.
func (l *visibleLaw) patience() time.Duration {
	if slices.ContainsFunc(l.faults.spans, func(s *span) bool { return s.open && s.kind == "watch-refused" }) {
		return unanswered + blindTime
	}
	return blindTime
}

// blindWatch is a resource that cannot be listed or watched, and since when.
type blindWatch struct {
	resource string
	since    time.Time
}

// blind returns the resources that a client surely cannot list or watch now, because of a fault.
func (l *visibleLaw) blind(client string, now time.Time) []blindWatch {
	var found []blindWatch
	for key, asked := range l.asked {
		if key[0] != client {
			continue
		}
		if began, blind := l.blindSince(client, key[1], now); blind && !asked.Before(began) {
			found = append(found, blindWatch{key[1], asked})
		}
	}
	slices.SortFunc(found, func(a, b blindWatch) int { return strings.Compare(a.resource, b.resource) })
	return found
}

func (l *visibleLaw) judgeBlind(client string, watch blindWatch, families map[string]*dto.MetricFamily, at time.Time) {
	l.count("blindness judged: " + watchedKind(watch.resource))
	l.shown = true
	if !l.shownAsBlind(families, watch.resource) {
		l.violate(at, broken{"visible", client, "metric"}, "lists and watches of %s fail since %s, but at %s neither %s nor %s of it is 0",
			watch.resource, l.when(watch.since), l.when(at), syncedMetric, watchHealthy)
	}
	if allowed, written := l.eventsAllowedSince(); !written || allowed.Add(report).After(at) {
		return
	}
	// What an earlier fault has broken may still fail, and was reported just before the first request that surely fails.
	since := later(watch.since.Add(-report), l.events.recovered)
	for _, event := range l.events.warnings {
		if event.at.After(since) && l.saysOf(event.note, watch.resource) || event.at.After(watch.since) && l.disturbedBesides(at) {
			return
		}
	}
	l.violate(at, broken{"visible", client, "event"}, "lists and watches of %s fail since %s, but until %s no Warning Event names them",
		watch.resource, l.when(watch.since), l.when(at))
}

// shownAsBlind reports whether the metrics say that a resource, or nothing at all, is seen.
func (l *rules) shownAsBlind(families map[string]*dto.MetricFamily, resource string) bool {
	if lowest, found := gauge(families[syncedMetric]); found && lowest == 0 {
		return true
	}
	for _, metric := range families[watchHealthy].GetMetric() {
		of := resource
		for _, label := range metric.GetLabel() {
			if label.GetName() == "resource" {
				of = label.GetValue()
			}
		}
		if l.isNamed(of, resource) && metric.GetGauge().GetValue() == 0 {
			return true
		}
	}
	return false
}

// saysOf reports whether a text names a resource as one that is watched: as a word, or with its group.
func (l *rules) saysOf(text, resource string) bool {
	between := func(c rune) bool { return c != '.' && c != '/' && (c < 'a' || c > 'z') }
	return slices.ContainsFunc(strings.FieldsFunc(text, between), func(word string) bool { return l.isNamed(word, resource) })
}

// report is how long the program needs at most, once nothing else disturbs it, until the Event about a watch is written.
const report = 2 * time.Minute
