package oracle

import (
	"bytes"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// idleLog has the requests of the program that it must not make when users do nothing.
type idleLog struct {
	calls []*world.Call
	// warned has when the program last wrote a warning, by subject and reason.
	warned map[string]time.Time
}

// repeat is how soon an Event may say again what is still wrong: the API server forgets Events after an hour.
const repeat = 50 * time.Minute

// note keeps a request if it costs something.
func (l *idleLog) note(call *world.Call) {
	switch plural := call.Key.Resource.Plural; {
	case plural == "" || plural == "leases":
	case plural == "events" && call.Verb == "patch": // client-go ends a series of equal Events some minutes later
	case call.Verb == "list", call.Verb == "get" && (isConfig(plural) || isReferent(plural)) && call.Key.Name != "":
		l.calls = append(l.calls, call)
	case call.Verb == "create", call.Verb == "update", call.Verb == "patch", call.Verb == "delete":
		if plural != "events" || !l.repeats(call) {
			l.calls = append(l.calls, call)
		}
	}
}

// repeats reports whether an Event says again what one said about an hour ago.
func (l *idleLog) repeats(call *world.Call) bool {
	if !bytes.Contains(call.Body, []byte("Warning")) {
		return false // decoding it would cost more
	}
	event := eventOf(call)
	about, kind, reason := subjectOf(event), text(event, "type"), text(event, "reason")
	subject := text(about, "kind") + "/" + text(about, "namespace") + "/" + text(about, "name")
	if kind != "Warning" {
		return false
	}
	if l.warned == nil {
		l.warned = map[string]time.Time{}
	}
	before, known := l.warned[subject+" "+reason]
	l.warned[subject+" "+reason] = call.Arrived
	return known && call.Arrived.Sub(before) >= repeat
}

// Idle judges a time in which users did nothing and nothing was pending: the law "idle".
func (o *Oracle) Idle(from, to time.Time) {
	o.advance(to)
	if o.waitingRuns() || o.heldJobs() {
		o.count("idle times excused: the program looks after a Job")
		return
	}
	o.count("idle times judged")
	for _, call := range o.idle.calls {
		if call.Arrived.Before(from) || call.Arrived.After(to) {
			continue
		}
		subject := idOf(call.Key).String()
		switch call.Verb {
		case "get":
			o.violate(call.Arrived, broken{"idle", subject, "read" + o.busyUnder()}, "%s read it at %s, although nothing had changed since %s",
				call.Client, o.when(call.Arrived), o.when(from))
		case "list":
			o.violate(call.Arrived, broken{"idle", subject, "list"}, "%s listed %s at %s, although nothing had changed since %s",
				call.Client, call.Path, o.when(call.Arrived), o.when(from))
		default:
			o.violate(call.Arrived, broken{"idle", subject, call.Verb + o.busyUnder()}, "%s sent a %s at %s, although nothing had changed since %s: %.300s",
				call.Client, call.Verb, o.when(call.Arrived), o.when(from), call.Body)
		}
	}
}
