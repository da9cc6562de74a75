package report

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
)

// eventsForbidden is the answer where the permission to create Events is missing.
func eventsForbidden() error {
	return apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
}

func TestReloadIsCountedByOneProcess(t *testing.T) {
	t.Parallel()
	const soon, late = 10 * time.Second, countedAfter + time.Second
	tests := map[string]struct {
		// taken is how old the reload is when the process begins to lead, seen when it learns of the reload, and failed at each failed
		// attempt. The permission is missing, or there is no answer.
		taken    time.Duration
		seen     time.Duration
		failed   []time.Duration
		noAnswer bool
		result   outbox.Outcome
		// leader is how often the leader at the time of the reload counts it, next how often a later one does.
		leader, next int
		why          string
	}{
		"created":                       {result: outbox.Created, leader: 1, next: 1},
		"exists":                        {result: outbox.Exists, why: "who has created it has counted it"},
		"dropped":                       {result: outbox.Dropped, leader: 1, why: "no process will create it"},
		"failed, then created":          {failed: []time.Duration{soon}, result: outbox.Created, leader: 1, next: 1, why: "once"},
		"failed, then exists":           {failed: []time.Duration{soon}, result: outbox.Exists, why: "who has created it has counted it"},
		"failed, and given up":          {failed: []time.Duration{soon}, leader: 0, why: "the next leader counts it"},
		"failed for long, and given up": {failed: []time.Duration{soon, late}, leader: 1, next: 1, why: "the next leader does not count it"},
		"failed for long, then created": {failed: []time.Duration{late, 2 * late}, result: outbox.Created, leader: 1, next: 1, why: "once"},
		"failed for long, then dropped": {failed: []time.Duration{late}, result: outbox.Dropped, leader: 1, next: 1, why: "once"},
		"no answer for long, then exists": {
			failed: []time.Duration{late}, noAnswer: true, result: outbox.Exists, leader: 1, why: "the leader before has created it",
		},
		"no answer for long, then created": {
			failed: []time.Duration{late}, noAnswer: true, result: outbox.Created, leader: 1, next: 1, why: "once",
		},
		"no answer for long, and given up": {failed: []time.Duration{late}, noAnswer: true, leader: 1, why: "the next leader cannot know"},
		"failed until it counts":           {failed: []time.Duration{countedAfter}, leader: 1, next: 1},
		"taken over when it has counted":   {taken: countedAfter, result: outbox.Created, leader: 1, why: "an earlier leader has counted it"},
		"taken over soon, seen late": {
			taken: soon, seen: late, result: outbox.Created, leader: 1, next: 1, why: "no earlier leader led for so long without an Event",
		},
		"taken over soon, seen late, then failed": {taken: soon, seen: late, failed: []time.Duration{2 * late}, leader: 1, next: 1, why: "once"},
		"taken over late":                         {taken: late, failed: []time.Duration{2 * late}, result: outbox.Created, leader: 1, why: "an earlier leader has counted it"},
	}
	for name, tc := range tests {
		for _, fresh := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				want := tc.next
				if fresh {
					want = tc.leader
				}
				failure := eventsForbidden()
				if tc.noAnswer {
					failure = errors.New("no answer")
				}
				synctest.Test(t, func(t *testing.T) {
					l, out, now := emitter()
					made := *now
					wait := func(age time.Duration) {
						more := made.Add(age).Sub(*now)
						*now = now.Add(more)
						if more > 0 { // a timer of no duration can break the race detector of Go 1.26
							<-time.After(more)
						}
					}
					wait(tc.taken)
					l.with.Leads.Begin(*now)
					wait(max(tc.seen, tc.taken))
					l.emit(webOf(), reloadAt(made, "1"), emission{fresh: fresh, last: true})
					require.Len(t, out.messages, 1)
					for _, age := range tc.failed {
						wait(age)
						out.messages[0].Failed(failure)
					}
					out.messages[0].Done(tc.result)
					assert.Equal(t, want, counted(l, "configmap"), "fresh %t: %s", fresh, tc.why)
				})
			})
		}
	}
}

// The permission to create Events is missing while a leader ends: the next one creates the Event, and is the only one to count.
func TestReloadIsCountedOnceWhereEventsAreRefusedAcrossLeaders(t *testing.T) {
	t.Parallel()
	var counts int
	for _, fresh := range []bool{true, false} {
		l, out, now := emitter()
		l.emit(webOf(), reloadAt(*now, "1"), emission{fresh: fresh})
		out.messages[0].Failed(eventsForbidden())
		if !fresh {
			out.messages[0].Done(outbox.Created)
		}
		counts += counted(l, "configmap")
	}
	assert.Equal(t, 1, counts)
}

// A later leader, whose clock is right, counts the reload.
func TestReloadIsNotCountedEarlyWhereTheClockIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ahead, stamped, then, waits time.Duration }{
		"the clock is set forward":                              {then: 2 * countedAfter, waits: time.Minute},
		"the clock is ahead at the reload and set back":         {ahead: 2 * countedAfter, stamped: 2 * countedAfter, waits: countedAfter},
		"the clock is ahead of that of the replica that stamps": {ahead: 2 * countedAfter, then: 2 * countedAfter, waits: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, out, _ := emitter()
				offset := tc.ahead
				l.with.Now = func() time.Time { return time.Now().Add(offset) }
				l.emit(webOf(), reloadAt(time.Now().Add(tc.stamped), "1"), emission{fresh: true})
				offset = tc.then
				<-time.After(tc.waits)
				out.messages[0].Failed(eventsForbidden())
				assert.Zero(t, counted(l, "configmap"))
			})
		})
	}
}
