package oracle

import (
	"bytes"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// repeat is how soon an Event may say again what is still wrong: the API server forgets Events after an hour.
const repeat = 50 * time.Minute

// mostWatches is how often a process may open a watch of a resource in a time that is judged: the API server ends each after some minutes.
const mostWatches = 2

// idleLaw is the law "idle".
type idleLaw struct {
	*ledger
	passive

	// calls are the requests of the program that it must not make when users do nothing.
	calls []*world.Call
	// warned has when the program last wrote a warning, by subject and reason.
	warned map[string]time.Time
}

// note keeps a request if it costs something.
func (l *idleLaw) note(call *world.Call) {
	switch plural := call.Key.Resource.Plural; {
	case plural == "" || plural == "leases":
	case plural == "events" && call.Verb == "patch": // client-go ends a series of equal Events some minutes later
	case call.Verb == "get", call.Verb == "list", call.Verb == "watch":
		l.calls = append(l.calls, call)
	case call.Verb == "create", call.Verb == "update", call.Verb == "patch", call.Verb == "delete":
		if plural != "events" || !l.repeats(call) {
			l.calls = append(l.calls, call)
		}
	}
}

// repeats reports whether an Event says again what one said about an hour ago.
func (l *idleLaw) repeats(call *world.Call) bool {
	if !bytes.Contains(call.Body, []byte("Warning")) {
		return false // decoding it would cost more
	}
	event := eventOf(call)
	about, kind, reason := subjectOf(event), world.Text(event, "type"), world.Text(event, "reason")
	subject := world.Text(about, "kind") + "/" + world.Text(about, "namespace") + "/" + world.Text(about, "name")
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

func (l *idleLaw) request(call *world.Call) {
	if l.isProgram(call) && !l.isKeySecret(call.Key) {
		l.note(call)
	}
}

// waitingRuns reports whether a reload of any CronJob waits: the program then looks for its Jobs from time to time.
func (l *idleLaw) waitingRuns() bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool { return !w.gone && w.eligible && l.waitsForRuns(w) })
}

// judge judges a time in which users did nothing and nothing was pending: the law "idle".
func (l *idleLaw) judge(from, to time.Time) {
	if l.waitingRuns() || l.heldJobs() {
		l.count("idle times excused: the program looks after a Job")
		return
	}
	if l.disagreeing() {
		l.count("idle times excused: two installations track different objects of a workload")
		return
	}
	l.count("idle times judged")
	watches := map[string]int{}
	for _, call := range l.calls {
		if call.Arrived.Before(from) || call.Arrived.After(to) {
			continue
		}
		subject := idOf(call.Key).String()
		switch call.Verb {
		case "watch":
			subject += " of " + call.Client
			watches[subject]++
			l.judgeWatch(call, from, subject, watches[subject])
		case "get":
			l.violate(call.Arrived, broken{"idle", subject, "read" + l.busyUnder()}, "%s read it at %s, although nothing had changed since %s",
				call.Client, l.when(call.Arrived), l.when(from))
		case "list":
			l.violate(call.Arrived, broken{"idle", subject, "list"}, "%s listed %s at %s, although nothing had changed since %s",
				call.Client, call.Path, l.when(call.Arrived), l.when(from))
		default:
			l.violate(call.Arrived, broken{"idle", subject, call.Verb + l.busyUnder()},
				"%s sent a %s at %s, although nothing had changed since %s: %.300s",
				call.Client, call.Verb, l.when(call.Arrived), l.when(from), call.Body)
		}
	}
}

// judgeWatch judges the nth watch of a process since a moment.
func (l *idleLaw) judgeWatch(call *world.Call, from time.Time, subject string, n int) {
	if n > mostWatches {
		l.violate(call.Arrived, broken{"idle", subject, "watch"}, "watch %d was opened at %s, although nothing had changed since %s",
			n, l.when(call.Arrived), l.when(from))
	}
}

// busyUnder returns the circumstances in which the program works although nothing changes.
func (l *idleLaw) busyUnder() string {
	for _, w := range l.all {
		if slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.lost }) {
			return keyLost
		}
	}
	return ""
}
