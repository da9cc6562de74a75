package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// resumes has for which Deployments the API server has refused the end of a pause.
type resumes struct{ perWorkload[refusedEnd] }

// refusedEnd is how the attempts to end one pause have fared.
type refusedEnd struct {
	refused int
	until   time.Time
}

// Wait returns how long to wait before the end of a pause is tried again; 0 unless it was refused.
func (r *resumes) Wait(key workload.Key, now time.Time) (wait time.Duration) {
	r.find(key, func(e *refusedEnd) { wait = max(e.until.Sub(now), 0) })
	return wait
}

// Refused records that the end of a pause was refused, and returns how long to wait: longer each time.
func (r *resumes) Refused(key workload.Key, now time.Time) (wait time.Duration) {
	r.with(key, func(e *refusedEnd) {
		wait = min(firstRarely<<min(e.refused, 10), longestRarely)
		e.refused, e.until = e.refused+1, now.Add(wait)
	})
	return wait
}
