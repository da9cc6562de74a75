package oracle

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// reloadEvent is one Event that says that a workload was reloaded.
type reloadEvent struct {
	namespace, kind, name, uid string
	// note is its text.
	note string
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
	// wrote one that says that a reload failed; contested when one said that another writer undoes each write of the record.
	warnings                  []warning
	warned, failed, contested map[string]time.Time
	// lost is how many Events of reloads a restore has taken away: a new leader writes and counts them again.
	lost int
	// recovered is when it last wrote that all watches work again.
	recovered time.Time
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
	versionTime

	about, reason, note string
}

// noteOf returns the text of an Event, in either of the two APIs.
func noteOf(event world.Object) string {
	return world.Text(event, "note") + world.Text(event, "message")
}

// eventLog records the Events of the program.
type eventLog struct {
	*rules
	*findings

	events events
}

func newEventLog(r *rules, f *findings) *eventLog {
	return &eventLog{r, f, events{
		reloaded: map[string]reloadEvent{}, bodies: map[string]world.Object{}, warned: map[string]time.Time{}, failed: map[string]time.Time{},
		contested: map[string]time.Time{},
	}}
}

// subjectOf returns what an Event is about, in either of the two APIs.
func subjectOf(event world.Object) world.Object {
	if about := world.Section(event, "regarding"); about != nil {
		return about
	}
	return world.Section(event, "involvedObject")
}

// commitEvent records an Event.
func (l *eventLog) commitEvent(c world.Commit) {
	if c.Restored > 0 && c.New == nil && world.Text(c.Old, "reason") == "Reloaded" {
		l.events.lost++
	}
	if c.New == nil || !l.isProgram(c.Call) {
		return
	}
	if world.Text(c.New, "type") == "Warning" {
		about := world.Text(subjectOf(c.New), "uid")
		l.events.warnings = append(l.events.warnings, warning{versionTime{c.At, c.Version}, about, world.Text(c.New, "reason"), noteOf(c.New)})
		l.events.warned[about] = c.At
		switch world.Text(c.New, "reason") {
		case "ReloadFailed":
			l.events.failed[about] = c.At
		case "RecordContested":
			l.events.contested[about] = c.At
		}
		l.recordHeld(c)
	}
	name := c.Key.Namespace + "/" + c.Key.Name
	if world.Text(c.New, "reason") == "WatchRecovered" {
		l.events.recovered = c.At
	}
	l.events.bodies[name] = c.New
	if world.Text(c.New, "reason") == "Reloaded" {
		l.events.writes = append(l.events.writes, eventWrite{c.Call.Client, c.At})
	}
	l.recordReload(name, c.New)
}

// recordHeld records an Event that says that custom resources are held.
func (l *eventLog) recordHeld(c world.Commit) {
	if world.Text(c.New, "reason") != "ReferentHeld" {
		return
	}
	about := subjectOf(c.New)
	l.events.held = append(l.events.held, heldReport{
		kind: world.Text(about, "kind"), namespace: world.Text(about, "namespace"), name: world.Text(about, "name"), note: noteOf(c.New),
		at: c.At,
	})
}

// recordReload records an Event that reports a reload.
func (l *eventLog) recordReload(name string, body world.Object) {
	if world.Text(body, "reason") != "Reloaded" {
		return
	}
	about := subjectOf(body)
	event := reloadEvent{
		namespace: world.Text(about, "namespace"), kind: world.Text(about, "kind"), name: world.Text(about, "name"),
		uid: world.Text(about, "uid"), note: noteOf(body), count: 1,
	}
	for _, count := range []any{body["count"], body["deprecatedCount"], world.Section(body, "series")["count"]} {
		if n, ok := numberOf(count); ok && int(n) > event.count {
			event.count = int(n)
		}
	}
	l.events.reloaded[name] = event
}

// recordCollision records an Event whose name is that of one about something else. Names that are made of the time, as
// client-go makes them, collide only in fake time, where many things happen at one moment.
func (l *eventLog) recordCollision(r world.Reply) {
	if r.Status != http.StatusConflict || r.Call.Verb != "create" || r.Call.Key.Resource.Plural != "events" {
		return
	}
	body := eventOf(r.Call)
	if body == nil {
		return
	}
	name := r.Call.Key.Namespace + "/" + world.Text(world.Section(body, "metadata"), "name")
	stored := l.events.bodies[name]
	same := world.Text(stored, "reason") == world.Text(body, "reason")
	for _, field := range []string{"kind", "namespace", "name", "uid"} {
		same = same && world.Text(subjectOf(stored), field) == world.Text(subjectOf(body), field)
	}
	if stored != nil && !same {
		l.recordReload(name+" "+world.Text(body, "note")+world.Text(subjectOf(body), "resourceVersion"), body)
		l.count("Events that collided")
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
func (l *eventLog) reloadsReported(w *workload) int {
	sum := 0
	for _, event := range l.events.reloaded {
		sameName := event.namespace == w.id.namespace && event.name == w.id.name && pluralOf(world.Object{"kind": event.kind}) == w.id.plural
		if event.uid != "" && event.uid == w.uid || (event.uid == "" || w.uid == "") && sameName {
			sum += event.count
		}
	}
	return sum
}

// excuseUnreported records that the reloads that have no Event yet need none: the program may let the workload alone from now on, or
// the annotation that reports them may have been taken away. Later ones need one.
func (l *eventLog) excuseUnreported(w *workload) {
	if w.story.restarts > 0 {
		w.story.excused, w.story.lost = max(w.story.restarts-l.reloadsReported(w), 0), 0
	}
}
