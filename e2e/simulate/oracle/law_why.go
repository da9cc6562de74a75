package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Question is about a workload whose changes are found late, since a resource cannot be watched, or whose reload fails, since a permission
// is missing.
type Question struct {
	// Workload is what `pod-reloader why` is asked about.
	Workload world.Key
	// Asked is when.
	Asked time.Time

	client string
	watch  blindWatch
	// denied is since when the reload of the workload is due that fails; zero if the question is about a watch.
	denied time.Time
}

// ask returns a workload that depends on what cannot be watched, which the leader has had the time to report; false if there is none.
func (l *visibleLaw) ask(now time.Time) (Question, bool) {
	for _, watch := range l.blind(l.leader, now) {
		since := later(watch.since, l.leaderSince)
		if now.Sub(since) < l.patience() {
			continue
		}
		for _, w := range l.all {
			if !w.gone && w.eligible && w.id.plural != rollouts && w.dependsOn(watch.resource) {
				return Question{Workload: keyOf(w), Asked: now, client: l.leader, watch: watch}, true
			}
		}
	}
	return Question{}, false
}

// dependsOn reports whether a watch of a resource shows changes that matter to a workload.
func (w *workload) dependsOn(resource string) bool {
	if w.id.plural == resource || resource == "namespaces" {
		return true
	}
	return slices.ContainsFunc(w.refs, func(r ref) bool {
		return r.plural == resource || resource == filters && r.plural == proxies // a proxy refers to filters
	})
}

// keyOf returns the key of a workload.
func keyOf(w *workload) world.Key {
	of := world.Resource{Plural: w.id.plural, Kind: world.Text(w.object, "kind")}
	return world.Key{Resource: of, Namespace: w.id.namespace, Name: w.id.name}
}

// judgeWhy is the law "visible" for `pod-reloader why`: what it prints about a workload names the watch that fails. What came to an end
// meanwhile is not judged.
func (l *visibleLaw) judgeWhy(q Question, printed string, at time.Time) {
	if began, blind := l.blindSince(q.client, q.watch.resource, at); !blind || q.watch.since.Before(began) || q.client != l.leader {
		return
	}
	l.count("explanations judged")
	named := slices.ContainsFunc(strings.Split(printed, "\n"), func(line string) bool {
		return strings.Contains(line, "watch") && l.saysOf(line, q.watch.resource)
	})
	if !named {
		l.violate(at, broken{"visible", idOf(q.Workload).String(), "why"},
			"lists and watches of %s fail since %s, but what why prints at %s does not say so:\n%s",
			q.watch.resource, l.when(q.watch.since), l.when(at), printed)
	}
}
