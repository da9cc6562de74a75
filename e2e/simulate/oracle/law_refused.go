package oracle

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The most refusals of one write in refusedTime. The program repeats what a user must mend after 1 s and 2 s, and then, where config
// objects change all the time, every 3 s: these are 7. What may pass by itself it repeats after 25 ms at first, and each pause is twice the
// one before, up to 3 s: these are 11.
const (
	refusedTime    = 15 * time.Second
	mostRefusals   = 8
	mostTransients = 13
)

// refusal is a write of one process that is refused again and again.
type refusal struct {
	client string
	object id
	// resumes means that the write ends a pause: its pauses are those of no other write.
	resumes bool
	// most is how many refusals of this kind there may be.
	most int
}

// refusedLaw is the law "hot-loop" for writes that the API server refuses: the pauses between them grow, whatever changes meanwhile.
type refusedLaw struct {
	*ledger
	passive

	// refusals are the times of those since the process last wrote the object, or a user did.
	refusals map[refusal][]time.Time
}

func newRefusedLaw(l *ledger) *refusedLaw {
	return &refusedLaw{ledger: l, refusals: map[refusal][]time.Time{}}
}

// stored forgets the refusals of an object that others write: that may be what they were about.
func (l *refusedLaw) stored(c world.Commit) {
	if c.Call != nil && !l.isProgram(c.Call) {
		l.forget(func(r refusal) bool { return r.object == idOf(c.Key) })
	}
}

func (l *refusedLaw) forget(is func(r refusal) bool) {
	for r := range l.refusals {
		if is(r) {
			delete(l.refusals, r)
		}
	}
}

func (l *refusedLaw) reply(r world.Reply) {
	call := r.Call
	plural := call.Key.Resource.Plural
	if !isWriteVerb(call.Verb) || !l.isProgram(call) || plural == "leases" || strings.HasSuffix(plural, "reviews") {
		return
	}
	if r.Status < http.StatusBadRequest {
		if len(l.refusals) > 0 && !call.DryRun {
			object := writtenBy(call)
			l.forget(func(r refusal) bool { return r.client == call.Client && r.object == object })
		}
		return
	}
	if r.Status != http.StatusConflict {
		l.judge(r, refusal{call.Client, writtenBy(call), endsPause(call), most(r)})
	}
}

// most returns how many refusals like this one there may be.
func most(r world.Reply) int {
	switch r.Status {
	case http.StatusTooManyRequests,
		http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity: // as a patch of what has changed meanwhile
		return mostTransients
	}
	if r.Lost || r.Status >= http.StatusInternalServerError {
		return mostTransients
	}
	return mostRefusals
}

// endsPause reports whether a request removes the annotation of a pause.
func endsPause(call *world.Call) bool {
	removed := `{"op":"remove","path":"/metadata/annotations/` + strings.ReplaceAll(pausedAt, "/", "~1") + `"`
	return bytes.Contains(call.Body, []byte(`"`+pausedAt+`":null`)) || bytes.Contains(call.Body, []byte(removed))
}

// writtenBy returns the object that a write is about: a creation names it in its body.
func writtenBy(call *world.Call) id {
	object := idOf(call.Key)
	if object.name == "" {
		object.name = world.Text(eventOf(call), "metadata", "name")
	}
	return object
}

func (l *refusedLaw) judge(r world.Reply, of refusal) {
	l.count("refusals judged")
	times := slices.DeleteFunc(l.refusals[of], func(at time.Time) bool { return r.At.Sub(at) >= refusedTime })
	l.refusals[of] = append(times, r.At)
	switch n := len(l.refusals[of]); {
	case n <= of.most:
	case l.faults.clockRan(r.At):
		l.count("hot loops excused: a clock was wrong")
	default:
		l.violate(r.At, broken{"hot-loop", of.object.String(), "refused"},
			"%s had %d writes of it refused in the %s before %s, the last %s with status %d",
			of.client, n, refusedTime, l.when(r.At), r.Call.Verb, r.Status)
	}
}
