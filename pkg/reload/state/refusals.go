package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// refusals has since when the API server has refused each attempt at a workload.
type refusals struct{ perWorkload[time.Time] }

// Refused records that an attempt was refused, and returns when the first one was since the last Forget.
func (r *refusals) Refused(key workload.Key, now time.Time) (first time.Time) {
	r.with(key, func(e *time.Time) {
		if e.IsZero() {
			*e = now
		}
		first = *e
	})
	return first
}
