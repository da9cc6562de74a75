package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// runs has the last Job that was made for each CronJob.
type runs struct{ perWorkload[run] }

type run struct {
	job string
	at  time.Time
}

// Ran records that a Job was made.
func (r *runs) Ran(key workload.Key, job string, at time.Time) {
	r.with(key, func(e *run) { *e = run{job, at} })
}

// Wait returns how long to wait before another Job: under constant change each attempt at a reload finds another content.
func (r *runs) Wait(key workload.Key, job string, now time.Time, distance time.Duration) time.Duration {
	var wait time.Duration
	r.find(key, func(e *run) {
		if e.job != job {
			wait = max(e.at.Add(distance).Sub(now), 0)
		}
	})
	return wait
}
