package state

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// runs has the last Job that was made for each CronJob.
type runs struct {
	perWorkload[run]

	// judged has, for each CronJob, a digest of the last reload of which it was decided whether it needs a Job.
	judged perWorkload[uint64]
}

// PendingRun says whether a CronJob needs another Job.
type PendingRun int

const (
	// NoRun means that it needs none.
	NoRun PendingRun = iota
	// UnprovenRun means that a reload of an earlier leader may have no Job.
	UnprovenRun
	// DueRun means that a reload has no Job, or that its content may be newer than the one that its Job has started with.
	DueRun
)

type run struct {
	cronrun.Run
	at time.Time
	// names are those of the Jobs that were made after the same last reload, in order; keptNames at most.
	names   []string
	pending PendingRun
	// waiting is the Job that waits for others, if any.
	waiting waitingRun
}

// waitingRun is a Job to be made that must wait for others.
type waitingRun struct {
	job string
	// since is when the wait began, look when those are looked at again.
	since, look time.Time
}

// keptNames is how many names are kept. Of Jobs, the API server keeps three that were successful, unless a CronJob says otherwise.
const keptNames = 100

// RecordJob records that a Job was made. No other one is pending then.
func (r *runs) RecordJob(key workload.Key, made cronrun.Run, at time.Time) {
	r.with(key, func(e *run) {
		names := []string{made.Job}
		if e.After == made.After {
			names = append(e.names[max(0, len(e.names)-keptNames+1):], made.Job)
		}
		*e = run{Run: made, at: at, names: names}
	})
}

// MadeBefore returns the last Job, if one of a name was made before it.
func (r *runs) MadeBefore(key workload.Key, job string) (last string, ok bool) {
	e := r.get(key)
	return e.Job, e.Job != job && slices.Contains(e.names, job)
}

// Unstamped returns the last Job and the content that its reload replaces, if a workload whose last reload is this one lacks that reload.
func (r *runs) Unstamped(key workload.Key, lastReload string) (job, replaces string) {
	e := r.get(key)
	if e.After != lastReload {
		return "", ""
	}
	return e.Job, e.Replaces
}

// AddDigests records what another attempt at the same reload knows of the Job that was made.
func (r *runs) AddDigests(key workload.Key, made cronrun.Run) {
	r.with(key, func(e *run) { e.Run = made })
}

// Wait returns how long to wait before another Job: under constant change each attempt at a reload finds another content.
func (r *runs) Wait(key workload.Key, job string, now time.Time, distance time.Duration) time.Duration {
	e := r.get(key)
	if e.Job == job {
		return 0
	}
	return max(e.at.Add(distance).Sub(now), 0)
}

// JobFor returns the last Job, if it was made for the same reload as one that is due: after the same last reload. A Job that was pending for
// that one was made after it, too, but follows the reload before it.
func (r *runs) JobFor(key workload.Key, due cronrun.Run) (made cronrun.Run, ok bool) {
	e := r.get(key)
	if e.Job == "" || e.After != due.After || e.Follows != due.Follows {
		return cronrun.Run{}, false
	}
	return e.Run, true
}

// HasRun reports whether the last Job was made with a content.
func (r *runs) HasRun(key workload.Key, content string) bool {
	e := r.get(key)
	return e.Job != "" && (e.Content == content || slices.Contains(e.Same, content))
}

// Require records that another Job is pending.
func (r *runs) Require(key workload.Key, pending PendingRun) {
	r.with(key, func(e *run) { e.pending = max(e.pending, pending) })
}

// Supersede records that a later reload makes the Job that may be pending for one of an earlier leader.
func (r *runs) Supersede(key workload.Key) {
	r.find(key, func(e *run) {
		if e.pending == UnprovenRun {
			e.pending = NoRun
		}
	})
}

// Pending returns whether another Job is pending.
func (r *runs) Pending(key workload.Key) PendingRun { return r.get(key).pending }

// Postpone records that a Job must wait for others, and after which time those are looked at again. It returns when the wait of that Job
// began, which is now at first.
func (r *runs) Postpone(key workload.Key, job string, now time.Time, again time.Duration) (since time.Time) {
	r.with(key, func(e *run) {
		since = now
		if e.waiting.job == job {
			since = e.waiting.since
		}
		e.waiting = waitingRun{job, since, now.Add(again)}
	})
	return since
}

// WaitForOthers returns how long to wait before the Jobs are looked at again that a pending one waits for; 0 if none is pending.
func (r *runs) WaitForOthers(key workload.Key, now time.Time) time.Duration {
	e := r.get(key)
	if e.pending == NoRun {
		return 0
	}
	return max(e.waiting.look.Sub(now), 0)
}

// AwaitsStamped reports whether a Job is pending with the content that is stamped: none was made since the last reload.
func (r *runs) AwaitsStamped(key workload.Key, lastReload string) bool {
	e := r.get(key)
	return e.pending != NoRun && (e.Job == "" || e.After != lastReload)
}

// Answered records that the last Job has the content that is stamped: no other one is pending for it. What its reload replaces is kept, since
// the stamp can be lost.
func (r *runs) Answered(key workload.Key) {
	r.find(key, func(e *run) { e.pending, e.waiting = NoRun, waitingRun{} })
}

// ClearPending records that no Job is pending.
func (r *runs) ClearPending(key workload.Key) {
	r.find(key, func(e *run) { e.pending, e.Replaces, e.waiting = NoRun, "", waitingRun{} })
}

// FirstDecision records that it is decided whether a reload needs a Job. It reports whether that was open.
func (r *runs) FirstDecision(key workload.Key, reload string) (open bool) {
	sum := DigestOf(reload)
	r.judged.with(key, func(e *uint64) { open, *e = *e != sum, sum })
	return open
}

// Forget drops what is kept of a CronJob.
func (r *runs) Forget(key workload.Key) {
	r.perWorkload.Forget(key)
	r.judged.Forget(key)
}
