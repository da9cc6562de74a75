package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// strategyLaw has the laws "explained" and "kept" for what --reload-strategy adds to a restart.
type strategyLaw struct {
	*ledger
	passive

	// contentOf has for which content of a Secret each value of a variable was written: it is keyed.
	contentOf map[string]int
}

func newStrategyLaw(l *ledger) *strategyLaw {
	return &strategyLaw{ledger: l, contentOf: map[string]int{}}
}

// stamped is the law "explained" for what --reload-strategy adds to a restart: it is written with the restart, it is about
// what has changed, and what is true is not written again. Where the hash of an earlier template returns, so does the rest.
func (l *strategyLaw) stamped(r restamp) {
	w, before, s, old, template := r.workload, r.before, r.stamp, r.old, r.template
	if !r.byProgram() || s.isRestart() || !l.mayWrite() {
		return
	}
	if before.hash == s.hash && !l.isRemoved(w, stripsStamp, r.commit) {
		l.count("strategy judged: same hash")
		l.violate(s.at, broken{"kept", w.id.String(), "strategy-rewritten"},
			"the program changed what --reload-strategy=%s writes at %s, although no restart was due", l.options.Strategy, l.when(s.at))
		return
	}
	if w.story.unrecorded >= before.version {
		l.count("strategy excused: no space to record what has changed")
		return
	}
	if !l.mustWrite(s) || l.returned(w, s) || w.changesUnclear(before) {
		return
	}
	if slices.ContainsFunc(w.refs, func(r ref) bool { return isReferent(r.plural) }) {
		l.count("strategy excused: custom resources leave no trace but the hash")
		return
	}
	l.count("strategy judged")
	if l.options.Strategy == strategyEnvVars {
		l.judgeVariables(w, s, variablesOf(old), variablesOf(template))
		return
	}
	l.judgeSource(w, s, world.Text(world.Annotations(old), sourceAnnotation), world.Text(world.Annotations(template), sourceAnnotation))
}

// mayWrite reports whether a replica may have had a strategy, mustWrite whether the one that made a stamp surely had the present one.
func (l *strategyLaw) mayWrite() bool { return l.options.Strategy != "" || l.policy.strategies }

func (l *strategyLaw) mustWrite(s *stamp) bool {
	return l.options.Strategy != "" && l.policy.settled(s.arrivedAt)
}

// changesUnclear reports whether the program may take something else for what has changed since a stamp than the oracle does.
func (w *workload) changesUnclear(before *stamp) bool {
	return w.uncertain(before) || w.comparesOthers(before)
}

// comparesOthers reports whether the program may compare something else than what it has read for a stamp.
func (w *workload) comparesOthers(before *stamp) bool {
	return before.foreign || w.lastHandEdit > before.version || !before.eligible || w.relisted > before.version || w.lostKeySince(before)
}

// earlierTemplates is how many earlier templates the program surely knows: it keeps some more.
const earlierTemplates = 3

// returned reports whether a stamp has the hash of an earlier one, and judges whether the rest has come back with it: else the pods
// of that template are not found again.
func (l *strategyLaw) returned(w *workload, s *stamp) bool {
	others, known, found := map[string]bool{}, true, false
	for _, earlier := range slices.Backward(w.stamps[:len(w.stamps)-1]) {
		if earlier.hash == s.hash {
			found = true
			if known && len(others) <= earlierTemplates && earlier.version > l.policy.strategy && earlier.managed != s.managed {
				l.violate(s.at, broken{"kept", w.id.String(), "strategy-not-returned"},
					"the hash of %s came back at %s, but not what --reload-strategy=%s had written with it",
					l.when(earlier.at), l.when(s.at), l.options.Strategy)
			}
			break
		}
		others[earlier.hash] = true
		known = known && earlier.program && !earlier.foreign && w.story.unrecorded < earlier.version
	}
	return found
}

// keepsSum reports whether an object may have changed between a stamp and the next without another SHA-1. What Reloader's strategies
// write for it is then the same, the time put aside.
func (l *strategyLaw) keepsSum(w *workload, before, s *stamp, r ref) bool {
	was, now := l.findContents(w, before, s, r)
	for a := range was {
		for b := range now {
			if a != b && l.contents.sameSum(a, b) {
				l.count("strategy excused: another content with the same SHA-1")
				return true
			}
		}
	}
	return false
}

// judgeVariables looks at each tracked object: the variable of one that has changed is for the present content, and that of
// another one is as it was.
func (l *strategyLaw) judgeVariables(w *workload, s *stamp, old, now map[string]string) {
	before := w.stamps[len(w.stamps)-2]
	for _, r := range w.refs {
		if l.scope.mayHide(r.plural) {
			continue // the replica may have made the stamp without a look at it
		}
		kept, modified, content := l.changed(w, before, s, r)
		name := variableOf(r)
		value := now[name]
		switch {
		case kept && (r.plural == configMapList || w.keyChanged <= before.version) && value != old[name]:
			l.violate(s.at, broken{"kept", w.id.String(), "variable-rewritten"},
				"the restart of %s changes %s from %q to %q, but %s has not changed since %s",
				l.when(s.at), name, old[name], value, r, l.when(before.at))
		case modified:
			l.judgeSetting(w, s, setting{r, content, old[name], value})
		}
	}
}

// setting is the variable of an object that has another content than before a restart.
type setting struct {
	of         ref
	content    int
	old, value string
}

func (l *strategyLaw) judgeSetting(w *workload, s *stamp, v setting) {
	l.count("variables judged")
	right := l.isRight(w, s, v)
	switch {
	case v.value == "" || !right && v.value == v.old:
		l.violate(s.at, broken{"explained", w.id.String(), "variable-stale"},
			"%s has changed, but the restart of %s leaves %s at %q", v.of, l.when(s.at), variableOf(v.of), v.value)
	case !right:
		l.violate(s.at, broken{"explained", w.id.String(), "variable-wrong"},
			"the restart of %s sets %s to %q, which is for another content of %s", l.when(s.at), variableOf(v.of), v.value, v.of)
	case v.value != v.old:
		l.contentOf[v.value] = v.content
	}
}

// isRight reports whether a variable is for the present content. That of a ConfigMap is a function of the content, and a release or Reloader
// may have set it before. That of a Secret is keyed: it is for the content that it was written for.
func (l *strategyLaw) isRight(w *workload, s *stamp, v setting) bool {
	of, known := l.contentOf[v.value]
	switch {
	case v.of.plural == configMapList:
		return v.value == l.contents.sums[v.content]
	case v.value == v.old:
		return of == v.content || l.keepsSum(w, w.stamps[len(w.stamps)-2], s, v.of)
	}
	return !known || l.contents.sameSum(of, v.content)
}

// source is the annotation of the strategy annotations, as far as it is judged.
type source struct {
	Type, Name, Namespace, Hash string
	ObservedAt                  int64
}

// near reports whether a time is about that of the stamp.
func (s *stamp) near(at time.Time) bool {
	return !at.Before(s.arrivedAt.Add(-closeTo)) && !at.After(s.at.Add(closeTo))
}

// judgeSource looks whether the annotation names an object that may have changed, and the time of the restart. Two restarts within a
// second can write the same: the object then has another content with the same SHA-1.
func (l *strategyLaw) judgeSource(w *workload, s *stamp, old, now string) {
	before := w.stamps[len(w.stamps)-2]
	var named source
	_ = json.Unmarshal([]byte(now), &named)
	r := ref{strings.ToLower(named.Type) + "s", named.Name}
	at := time.Unix(named.ObservedAt, 0)
	late := !l.faults.clocksWrong(s.at) && l.healthy(w, s.arrivedAt) && !s.near(at)
	kept, _, _ := l.changed(w, before, s, r)
	switch {
	case now == "" || now == old && !l.keepsSum(w, before, s, r),
		!l.mayTrack(w, r) || named.Namespace != w.id.namespace:
		l.violate(s.at, broken{"explained", w.id.String(), "source-stale"},
			"the restart of %s leaves %s at %q", l.when(s.at), sourceAnnotation, now)
	case late:
		l.violate(s.at, broken{"explained", w.id.String(), "source-time"},
			"the restart of %s says in %s that it was at %s", l.when(s.at), sourceAnnotation, l.when(at))
	case kept:
		l.violate(s.at, broken{"explained", w.id.String(), "source-wrong"},
			"the restart of %s names %s in %s, but it has not changed since %s", l.when(s.at), r, sourceAnnotation, l.when(before.at))
	}
}
