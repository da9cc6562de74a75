package oracle

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// reloadEvent is one Event that says that a workload was reloaded.
type reloadEvent struct {
	namespace, kind, name, uid string
	// count is how many reloads it counts.
	count int
}

// events has the Events that the program wrote.
type events struct {
	// reloaded has one entry for each name: an Event that is written again counts once.
	reloaded map[string]reloadEvent
	// writes has the process that wrote one, each time.
	writes []eventWrite
	// bodies has the Events as they are stored, by namespace and name.
	bodies map[string]world.Object
	// warnings has the Warnings that the program wrote, warned when it last wrote one about an object, by uid, and failed when it last
	// wrote one that says that a reload failed.
	warnings       []warning
	warned, failed map[string]time.Time
	// held are the reports of custom resources that are held.
	held []heldReport
}

// eventWrite is when a process wrote an Event that says that a workload was reloaded.
type eventWrite struct {
	client string
	at     time.Time
}

// warning is a Warning Event.
type warning struct {
	moment

	note string
}

// noteOf returns the text of an Event, in either of the two APIs.
func noteOf(event world.Object) string { return text(event, "note") + text(event, "message") }

func newEvents() events {
	return events{reloaded: map[string]reloadEvent{}, bodies: map[string]world.Object{}, warned: map[string]time.Time{}, failed: map[string]time.Time{}}
}

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
		o.events.warnings = append(o.events.warnings, warning{moment{c.At, c.Version}, noteOf(c.New)})
		about := text(subjectOf(c.New), "uid")
		o.events.warned[about] = c.At
		if text(c.New, "reason") == "ReloadFailed" {
			o.events.failed[about] = c.At
		}
		o.noteHeld(c)
	}
	name := c.Key.Namespace + "/" + c.Key.Name
	o.events.bodies[name] = c.New
	if text(c.New, "reason") == "Reloaded" {
		o.events.writes = append(o.events.writes, eventWrite{c.Call.Client, c.At})
	}
	o.noteReloadEvent(name, c.New)
}

// noteHeld takes note of an Event that says that custom resources are held.
func (o *Oracle) noteHeld(c world.Commit) {
	if text(c.New, "reason") != "ReferentHeld" {
		return
	}
	about := subjectOf(c.New)
	o.events.held = append(o.events.held, heldReport{
		kind: text(about, "kind"), namespace: text(about, "namespace"), name: text(about, "name"), note: noteOf(c.New), at: c.At,
	})
}

// noteReloadEvent takes note of an Event that reports a reload.
func (o *Oracle) noteReloadEvent(name string, body world.Object) {
	if text(body, "reason") != "Reloaded" {
		return
	}
	about := subjectOf(body)
	event := reloadEvent{
		namespace: text(about, "namespace"), kind: text(about, "kind"), name: text(about, "name"), uid: text(about, "uid"), count: 1,
	}
	for _, count := range []any{body["count"], body["deprecatedCount"], section(body, "series")["count"]} {
		if n, ok := numberOf(count); ok && int(n) > event.count {
			event.count = int(n)
		}
	}
	o.events.reloaded[name] = event
}

// noteCollision takes note of an Event whose name is that of one about something else. Names that are made of the time, as
// client-go makes them, collide only in fake time, where many things happen at one moment.
func (o *Oracle) noteCollision(r world.Reply) {
	if r.Status != http.StatusConflict || r.Call.Verb != "create" || r.Call.Key.Resource.Plural != "events" {
		return
	}
	body := eventOf(r.Call)
	if body == nil {
		return
	}
	name := r.Call.Key.Namespace + "/" + text(section(body, "metadata"), "name")
	stored := o.events.bodies[name]
	same := text(stored, "reason") == text(body, "reason")
	for _, field := range []string{"kind", "namespace", "name", "uid"} {
		same = same && text(subjectOf(stored), field) == text(subjectOf(body), field)
	}
	if stored != nil && !same {
		o.noteReloadEvent(name+" "+text(body, "note")+text(subjectOf(body), "resourceVersion"), body)
		o.count("Events that collided")
	}
}

// eventOf decodes the Event in a request; nil if there is none.
func eventOf(call *world.Call) world.Object {
	packed, isProtobuf := bytes.CutPrefix(call.Body, []byte("k8s\x00"))
	if !isProtobuf {
		event := world.Object{}
		if json.Unmarshal(call.Body, &event) != nil {
			return nil
		}
		return event
	}
	envelope := runtime.Unknown{}
	if envelope.Unmarshal(packed) != nil {
		return nil
	}
	var typed interface{ Unmarshal(raw []byte) error } = &corev1.Event{}
	if call.Key.Resource.Group == eventsv1.GroupName {
		typed = &eventsv1.Event{}
	}
	if typed.Unmarshal(envelope.Raw) != nil {
		return nil
	}
	event, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil
	}
	return event
}

// reloadsReported counts the reloads of a workload that Events report.
func (o *Oracle) reloadsReported(w *workload) int {
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
