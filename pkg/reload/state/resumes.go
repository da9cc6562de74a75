package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/backoff"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// resumes has for which Deployments the API server has refused the end of a pause.
type resumes struct{ perWorkload[refusedEnd] }

// PauseEnd is what was refused: what was to be done about the pause that began at some time.
type PauseEnd struct {
	Action pause.Action
	Since  string
}

// refusedEnd is how the attempts to end one pause have fared.
type refusedEnd struct {
	end     PauseEnd
	refused int
	// first is when the first refusal was of those in a row.
	first, until time.Time
}

// Wait returns how long to wait before the end of a pause is tried again; 0 unless it was refused.
func (r *resumes) Wait(key workload.Key, end PauseEnd, now time.Time) time.Duration {
	e := r.get(key)
	if e.end != end {
		return 0
	}
	return max(e.until.Sub(now), 0)
}

// Refused records that the end of a pause was refused, and returns when the first refusal was of those in a row, and how long to wait:
// longer each time, up to the longest wait of the pace, which is Refused or NeedsUser.
func (r *resumes) Refused(key workload.Key, end PauseEnd, pace Pace, now time.Time) (first time.Time, wait time.Duration) {
	longest := longestRarely
	if pace == Refused {
		longest = longestRefused
	}
	r.with(key, func(e *refusedEnd) {
		if e.end != end {
			*e = refusedEnd{end: end}
		}
		wait = backoff.Doubled(firstRarely, longest, e.refused)
		e.refused, e.until = e.refused+1, now.Add(wait)
		if e.first.IsZero() || pace != Refused {
			e.first = now
		}
		first = e.first
	})
	return first, wait
}

// Interrupted records that something else failed than an end of a pause that was refused.
func (r *resumes) Interrupted(key workload.Key) {
	r.find(key, func(e *refusedEnd) { e.first = time.Time{} })
}

// Ended forgets that the end of a pause was refused, and reports whether it was.
func (r *resumes) Ended(key workload.Key) (refused bool) {
	r.find(key, func(*refusedEnd) { refused = true })
	if refused {
		r.Forget(key)
	}
	return refused
}

// unansweredEnds has when the pauses began whose end had no answer, so that it may be stored.
type unansweredEnds struct{ perWorkload[string] }

// Add records that the end of a pause had no answer.
func (u *unansweredEnds) Add(key workload.Key, since string) {
	u.with(key, func(e *string) { *e = since })
}

// Take returns when the pause began, and forgets it; empty if there is none.
func (u *unansweredEnds) Take(key workload.Key) string {
	defer u.Forget(key)
	return u.get(key)
}
