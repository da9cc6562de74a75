package oracle

import (
	"sort"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// told is one Event that says that a workload was reloaded.
type told struct {
	namespace, kind, name, uid string
	// count is how many reloads it stands for.
	count int
}

// events has the Events that the program wrote.
type events struct {
	// reloaded has one entry for each name: to write an Event again is not to tell twice.
	reloaded map[string]told
	// warnings has when the program wrote Warnings.
	warnings []moment
}

func newEvents() events { return events{reloaded: map[string]told{}} }

// subjectOf returns what an Event is about, in either of the two APIs.
func subjectOf(event world.Object) world.Object {
	if about := section(event, "regarding"); about != nil {
		return about
	}
	return section(event, "involvedObject")
}

// commitEvent takes note of an Event.
func (o *Oracle) commitEvent(c world.Commit) {
	if c.New == nil || c.Call == nil || !o.options.Program(c.Call.Client) {
		return
	}
	if text(c.New, "type") == "Warning" {
		o.events.warnings = append(o.events.warnings, moment{c.At, c.Version})
	}
	if text(c.New, "reason") != "Reloaded" {
		return
	}
	about := subjectOf(c.New)
	event := told{
		namespace: text(about, "namespace"), kind: text(about, "kind"), name: text(about, "name"), uid: text(about, "uid"), count: 1,
	}
	for _, count := range []any{c.New["count"], c.New["deprecatedCount"], section(c.New, "series")["count"]} {
		if n, ok := numberOf(count); ok && int(n) > event.count {
			event.count = int(n)
		}
	}
	o.events.reloaded[c.Key.Namespace+"/"+c.Key.Name] = event
}

// reloadsTold counts the reloads of a workload that Events tell of.
func (o *Oracle) reloadsTold(w *workload) int {
	names := make([]string, 0, len(o.events.reloaded))
	for name := range o.events.reloaded {
		names = append(names, name)
	}
	sort.Strings(names)
	sum := 0
	for _, name := range names {
		event := o.events.reloaded[name]
		sameName := event.namespace == w.id.namespace && event.name == w.id.name && o.pluralOf(world.Object{"kind": event.kind}) == w.id.plural
		if event.uid != "" && event.uid == w.uid || (event.uid == "" || w.uid == "") && sameName {
			sum += event.count
		}
	}
	return sum
}
