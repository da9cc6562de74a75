package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// values has which content each value of a variable was written for.
type values struct {
	content map[string]int
	// value has the value for a content of a ConfigMap, which depends on nothing else.
	value map[int]string
}

func newValues() values { return values{map[string]int{}, map[int]string{}} }

// judgeStrategy is the law "explained" for what --reload-strategy adds to a restart: it is written with the restart, it is about
// what has changed, and what is true is not written again. Where the hash of an earlier template returns, so does the rest.
func (o *Oracle) judgeStrategy(w *workload, s *stamp, old, template world.Object) {
	before := w.stamps[len(w.stamps)-2]
	if !s.program || s.marks == before.marks || o.options.Strategy == "" {
		return
	}
	if before.hash == s.hash {
		o.count("strategy judged: same hash")
		o.violate(s.at, broken{"kept", w.id.String(), "strategy-rewritten"},
			"the program changed what --reload-strategy=%s writes at %s, although no restart was due", o.options.Strategy, o.when(s.at))
		return
	}
	if w.story.unrecorded >= before.version {
		o.count("strategy excused: no space to record what has changed")
		return
	}
	if o.returned(w, s) || w.changesUnclear(before) {
		return
	}
	if slices.ContainsFunc(w.refs, func(r ref) bool { return isReferent(r.plural) }) {
		o.count("strategy excused: custom resources leave no trace but the hash")
		return
	}
	o.count("strategy judged")
	if o.options.Strategy == strategyEnvVars {
		o.judgeVariables(w, s, variablesOf(old), variablesOf(template))
		return
	}
	o.judgeSource(w, s, text(annotationsOf(old), sourceMark), text(annotationsOf(template), sourceMark))
}

// changesUnclear reports whether the program may take something else for what has changed since a stamp than the oracle does.
func (w *workload) changesUnclear(before *stamp) bool {
	return w.unclearSince(before) || !before.eligible || w.relisted > before.version || w.lostKeySince(before)
}

// hashMarks are the annotations of a template that decide about a restart.
func (o *Oracle) hashMarks(template world.Object) string {
	annotations := annotationsOf(template)
	return text(annotations, o.options.Prefix+"config-hash") + " " + text(annotations, o.options.Prefix+"config-restart")
}

// earlierTemplates is how many earlier templates the program surely knows: it keeps some more.
const earlierTemplates = 3

// returned reports whether a stamp has the hash of an earlier one, and judges whether the rest has come back with it: else the pods
// of that template are not found again.
func (o *Oracle) returned(w *workload, s *stamp) bool {
	others, known, found := map[string]bool{}, true, false
	for _, earlier := range slices.Backward(w.stamps[:len(w.stamps)-1]) {
		if earlier.hash == s.hash {
			found = true
			if known && len(others) <= earlierTemplates && earlier.marks != s.marks {
				o.violate(s.at, broken{"kept", w.id.String(), "strategy-not-returned"},
					"the hash of %s came back at %s, but not what --reload-strategy=%s had written with it", o.when(earlier.at), o.when(s.at), o.options.Strategy)
			}
			break
		}
		others[earlier.hash] = true
		known = known && earlier.program && !earlier.foreign && w.story.unrecorded < earlier.version
	}
	return found
}

// changed returns what surely happened to an object between a stamp and the next: it kept its content, or it has another one; none
// of both where that is not known.
func (o *Oracle) changed(w *workload, before, s *stamp, r ref) (kept, modified bool, content int) {
	known, read := o.between(w, before, s, r)
	now, alone := read.only()
	was, knows := known.only()
	if !knows || !alone {
		return false, false, 0
	}
	return was == now, was != now && was != absent && now != absent, now
}

// between returns the contents of an object that a stamp may have been made with, and the next one.
func (o *Oracle) between(w *workload, before, s *stamp, r ref) (known, read believed) {
	window := &period{from: s.arrived, to: s.version}
	if s.direct || !o.healthy(w, s.arrivedAt) {
		window.from = min(s.arrived, o.versionAt(s.arrivedAt.Add(-readLongBefore)))
	}
	read = believed{}
	read.addPeriod(o.contents.of(w.id.namespace, r), window, o.version)
	return o.beliefs(w, before, r), read
}

// alike reports whether an object may have changed between a stamp and the next without another SHA-1. What Reloader's strategies
// write for it is then the same, the time put aside.
func (o *Oracle) alike(w *workload, before, s *stamp, r ref) bool {
	was, now := o.between(w, before, s, r)
	for a := range was {
		for b := range now {
			if a != b && o.contents.samePairs(a, b) {
				o.count("strategy excused: another content with the same SHA-1")
				return true
			}
		}
	}
	return false
}

// judgeVariables looks at each tracked object: the variable of one that has changed is for the present content, and that of
// another one is as it was.
func (o *Oracle) judgeVariables(w *workload, s *stamp, old, now map[string]string) {
	before := w.stamps[len(w.stamps)-2]
	for _, r := range w.refs {
		kept, modified, content := o.changed(w, before, s, r)
		name := variableOf(r)
		value := now[name]
		switch {
		case kept && (r.plural == configMapList || w.keyChanged <= before.version) && value != old[name]:
			o.violate(s.at, broken{"kept", w.id.String(), "variable-rewritten"},
				"the restart of %s changes %s from %q to %q, but %s has not changed since %s", o.when(s.at), name, old[name], value, r, o.when(before.at))
		case modified && (value == "" || value == old[name] && o.values.content[value] != content && !o.alike(w, before, s, r)):
			o.violate(s.at, broken{"explained", w.id.String(), "variable-stale"},
				"%s has changed since %s, but the restart of %s leaves %s at %q", r, o.when(before.at), o.when(s.at), name, value)
		case modified:
			o.judgeValue(w, s, r, content, value)
		}
	}
}

// judgeValue compares a value with earlier ones: one is for one content, and a content of a ConfigMap has one value.
func (o *Oracle) judgeValue(w *workload, s *stamp, r ref, content int, value string) {
	o.count("variables judged")
	of, known := o.values.content[value]
	other := o.values.value[content]
	if known && !o.contents.samePairs(of, content) || r.plural == configMapList && other != "" && other != value {
		o.violate(s.at, broken{"explained", w.id.String(), "variable-wrong"},
			"the restart of %s sets %s to %q, which is for another content of %s", o.when(s.at), variableOf(r), value, r)
		return
	}
	o.values.content[value] = content
	if r.plural == configMapList {
		o.values.value[content] = value
	}
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
func (o *Oracle) judgeSource(w *workload, s *stamp, old, now string) {
	before := w.stamps[len(w.stamps)-2]
	var named source
	_ = json.Unmarshal([]byte(now), &named)
	r := ref{strings.ToLower(named.Type) + "s", named.Name}
	at := time.Unix(named.ObservedAt, 0)
	late := !o.faults.clocksWrong(s.at) && o.healthy(w, s.arrivedAt) && !s.near(at)
	kept, _, _ := o.changed(w, before, s, r)
	switch {
	case now == "" || now == old && !o.alike(w, before, s, r) || !w.lists(id{r.plural, w.id.namespace, r.name}) || named.Namespace != w.id.namespace:
		o.violate(s.at, broken{"explained", w.id.String(), "source-stale"}, "the restart of %s leaves %s at %q", o.when(s.at), sourceMark, now)
	case late:
		o.violate(s.at, broken{"explained", w.id.String(), "source-time"}, "the restart of %s says in %s that it was at %s", o.when(s.at), sourceMark, o.when(at))
	case kept:
		o.violate(s.at, broken{"explained", w.id.String(), "source-wrong"},
			"the restart of %s names %s in %s, but it has not changed since %s", o.when(s.at), r, sourceMark, o.when(before.at))
	}
}
