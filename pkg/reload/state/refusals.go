package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// refusals has since when the API server has refused each attempt at a workload.
type refusals struct{ perWorkload[refusedAttempts] }

// refusedAttempts are refused attempts in a row: when the first one was, and the last one.
type refusedAttempts struct{ first, last time.Time }

// refusalsInARow is the longest time between two refused attempts in a row: more than the longest pause after one.
const refusalsInARow = 2 * longestRefused

// Refused records that an attempt was refused, and returns when the first one was of those in a row since the last Forget.
func (r *refusals) Refused(key workload.Key, now time.Time) (first time.Time) {
	r.with(key, func(e *refusedAttempts) {
		if now.Sub(e.last) > refusalsInARow {
			e.first = now
		}
		e.last, first = now, e.first
	})
	return first
}
