package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Question is about a workload whose changes are found late, since a resource cannot be watched, or whose reload fails, since a right is
// missing.
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

// AskWhy returns a workload of which the program must say that a watch or its reload fails; false if there is none. The workload depends on
// what cannot be watched, which the leader has had the time to report.
func (o *Oracle) AskWhy(now time.Time) (Question, bool) {
	o.advance(now)
	if !o.faults.up[o.leader] || o.faults.out(o.leader) || o.disturbedBesides(now) {
		return Question{}, false
	}
	for _, watch := range o.blind(o.leader, now) {
		since := later(watch.since, o.leaderSince)
		if now.Sub(since) < blindTime {
			continue
		}
		for _, w := range o.all {
			if !w.gone && w.eligible && w.id.plural != rollouts && w.dependsOn(watch.resource) {
				return Question{Workload: keyOf(w), Asked: now, client: o.leader, watch: watch}, true
			}
		}
	}
	if denied := o.denied(now); len(denied) > 0 {
		return Question{Workload: keyOf(denied[0]), Asked: now, client: o.leader, denied: denied[0].due.since}, true
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

func keyOf(w *workload) world.Key {
	return world.Key{Resource: world.Resource{Plural: w.id.plural, Kind: text(w.object, "kind")}, Namespace: w.id.namespace, Name: w.id.name}
}

// Why is the law "visible" for `pod-reloader why`: what it prints about a workload names the watch that fails. What came to an end
// meanwhile is not judged.
func (o *Oracle) Why(q Question, printed string, at time.Time) {
	o.advance(at)
	if !q.denied.IsZero() {
		o.judgeDeniedWhy(q, printed, at)
		return
	}
	if began, blind := o.blindSince(q.client, q.watch.resource, at); !blind || q.watch.since.Before(began) || q.client != o.leader {
		return
	}
	o.count("explanations judged")
	named := slices.ContainsFunc(strings.Split(printed, "\n"), func(line string) bool {
		return strings.Contains(line, "watch") && saysOf(line, q.watch.resource)
	})
	if !named {
		o.violate(at, broken{"visible", idOf(q.Workload).String(), "why"}, "lists and watches of %s fail since %s, but what why prints at %s does not say so:\n%s",
			q.watch.resource, o.when(q.watch.since), o.when(at), printed)
	}
}
