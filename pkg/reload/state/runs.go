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

// CronJob names one CronJob: one that is created again under the name of another has another UID.
type CronJob struct {
	workload.Key

	UID string
}

type run struct {
	cronrun.Run
	// uid is that of the CronJob.
	uid string
	at  time.Time
	// names are those of the Jobs that were made after the same last reload, in order; keptNames at most.
	names   []string
	pending PendingRun
	waiting waitingRun
}

// RunWait is what a run waits for.
type RunWait int

const (
	// NoWait means that it waits for nothing.
	NoWait RunWait = iota
	// ProofWait means that the Jobs cannot be listed which prove that it is due.
	ProofWait
	// JobsWait means that other Jobs are active.
	JobsWait
)

// waitingRun is what a run waits for, if for anything.
type waitingRun struct {
	reason RunWait
	// since is when the wait began, look when the Jobs are looked at again.
	since, look time.Time
}

// keptNames is how many names are kept. Of Jobs, the API server keeps three that were successful, unless a CronJob says otherwise.
const keptNames = 100

// RecordJob records that a Job was made. No other one is pending then.
func (r *runs) RecordJob(of CronJob, made cronrun.Run, at time.Time) {
	r.with(of, func(e *run) {
		names := []string{made.Job}
		if e.After == made.After {
			names = append(e.names[max(0, len(e.names)-keptNames+1):], made.Job)
		}
		*e = run{Run: made, uid: e.uid, at: at, names: names}
	})
}

// MadeBefore returns the last Job, if one of a name was made before it.
func (r *runs) MadeBefore(of CronJob, job string) (last string, ok bool) {
	e := r.get(of)
	return e.Job, e.Job != job && slices.Contains(e.names, job)
}

// Unstamped returns the last Job and the content that its reload replaces, if a workload whose last reload is this one lacks that reload.
func (r *runs) Unstamped(of CronJob, lastReload string) (job, replaces string) {
	e := r.get(of)
	if e.After != lastReload {
		return "", ""
	}
	return e.Job, e.Replaces
}

// AddDigests records what another attempt at the same reload knows of the Job that was made.
func (r *runs) AddDigests(of CronJob, made cronrun.Run) {
	r.with(of, func(e *run) { e.Run = made })
}

// Wait returns how long to wait before another Job: under constant change each attempt at a reload finds another content.
func (r *runs) Wait(of CronJob, job string, now time.Time, distance time.Duration) time.Duration {
	e := r.get(of)
	if e.Job == job {
		return 0
	}
	return max(e.at.Add(distance).Sub(now), 0)
}

// JobFor returns the last Job, if it was made for the same reload as one that is due: after the same last reload. A Job that was pending for
// that one was made after it, too, but follows the reload before it.
func (r *runs) JobFor(of CronJob, due cronrun.Run) (made cronrun.Run, ok bool) {
	e := r.get(of)
	if e.Job == "" || e.After != due.After || e.Follows != due.Follows {
		return cronrun.Run{}, false
	}
	return e.Run, true
}

// HasRun reports whether the last Job was made with a content.
func (r *runs) HasRun(of CronJob, content string) bool {
	e := r.get(of)
	return e.Job != "" && (e.Content == content || slices.Contains(e.Same, content))
}

// Require records that another Job is pending.
func (r *runs) Require(of CronJob, pending PendingRun) {
	r.with(of, func(e *run) { e.pending = max(e.pending, pending) })
}

// Supersede records that a later reload makes the Job that may be pending for one of an earlier leader.
func (r *runs) Supersede(of CronJob) {
	r.find(of, func(e *run) {
		if e.pending == UnprovenRun {
			e.pending, e.waiting = NoRun, waitingRun{}
		}
	})
}

// Pending returns whether another Job is pending.
func (r *runs) Pending(of CronJob) PendingRun { return r.get(of).pending }

// Postpone records that a run must wait, and after which time the Jobs are looked at again. It returns when that wait began, and
// whether it begins now. What has changed meanwhile, so that the Job has another name, is part of the same wait.
func (r *runs) Postpone(of CronJob, reason RunWait, now time.Time, again time.Duration) (since time.Time, begins bool) {
	r.with(of, func(e *run) {
		if begins = e.waiting.reason != reason; begins {
			e.waiting = waitingRun{reason: reason, since: now}
		}
		e.waiting.look, since = now.Add(again), e.waiting.since
	})
	return since, begins
}

// Waits reports whether a run waits for something.
func (r *runs) Waits(of CronJob, reason RunWait) bool { return r.get(of).waiting.reason == reason }

// WaitForOthers returns how long to wait before the Jobs are looked at again that a run waits for; 0 if none waits.
func (r *runs) WaitForOthers(of CronJob, now time.Time) time.Duration {
	return max(r.get(of).waiting.look.Sub(now), 0)
}

// EndWait records that no run waits, as where what has changed was taken back before the stamp.
func (r *runs) EndWait(of CronJob) {
	r.find(of, func(e *run) { e.waiting = waitingRun{} })
}

// AwaitsStamped reports whether a Job is pending with the content that is stamped: none was made since the last reload.
func (r *runs) AwaitsStamped(of CronJob, lastReload string) bool {
	e := r.get(of)
	return e.pending != NoRun && (e.Job == "" || e.After != lastReload)
}

// Answered records that the last Job has the content that is stamped: no other one is pending for it. What its reload replaces is kept, since
// the stamp can be lost.
func (r *runs) Answered(of CronJob) {
	r.find(of, func(e *run) { e.pending, e.waiting = NoRun, waitingRun{} })
}

// ClearPending records that no Job is pending.
func (r *runs) ClearPending(of CronJob) {
	r.find(of, func(e *run) { e.pending, e.Replaces, e.waiting = NoRun, "", waitingRun{} })
}

// FirstDecision records that it is decided whether a reload needs a Job. It reports whether that was open.
func (r *runs) FirstDecision(of CronJob, reload string) (open bool) {
	sum := DigestOf(reload)
	r.judged.with(of.Key, func(e *uint64) { open, *e = *e != sum, sum })
	return open
}

// with calls f with the entry of a CronJob, under the lock. That of another one of the name is dropped: what ends late for it, after the watch
// has shown its deletion, is not of this one.
func (r *runs) with(of CronJob, f func(*run)) {
	r.perWorkload.with(of.Key, func(e *run) {
		if e.uid != of.UID {
			*e = run{uid: of.UID}
		}
		f(e)
	})
}

// find calls f with the entry of a CronJob, under the lock, if there is one.
func (r *runs) find(of CronJob, f func(*run)) {
	r.perWorkload.find(of.Key, func(e *run) {
		if e.uid == of.UID {
			f(e)
		}
	})
}

// get returns a copy of the entry of a CronJob; zero if there is none.
func (r *runs) get(of CronJob) (entry run) {
	r.find(of, func(e *run) { entry = *e })
	return entry
}

// Forget drops what is kept of the CronJobs of a name.
func (r *runs) Forget(key workload.Key) {
	r.perWorkload.Forget(key)
	r.judged.Forget(key)
}
