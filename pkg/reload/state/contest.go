package state

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/backoff"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// contests finds the workloads on which another writer undoes what the loop writes, each time: it removes, reverts or spoils their Record, or
// sets an annotation again that the loop has removed. The loop then waits longer from write to write. It is safe for concurrent use.
type contests struct {
	perWorkload[contest]

	pruned time.Time
}

// contest is what the loop has written on one workload.
type contest struct {
	record writes
	// before is the sum of the Record that the last write replaced.
	before uint64
	// removed are the annotations that it has removed.
	removed map[string]writes
}

// writes are those of one thing in a row, and how they have fared.
type writes struct {
	// at is when the last one was made.
	at time.Time
	// undone is how many writes in a row were undone.
	undone int
}

const (
	// tolerated is how many writes in a row may be undone without a wait: a release tool that knows nothing of annotations
	// undoes one.
	tolerated = 2
	// firstContest and longestContest bound the wait from one write to the next.
	firstContest, longestContest = time.Second, time.Minute
	// contestOver is how long a write must last to end a row.
	contestOver = 10 * longestContest
)

// Wait returns how long to wait before the Record of a workload is written again; it is 0 unless the last writes were undone.
func (c *contests) Wait(key workload.Key, present string, now time.Time) (wait time.Duration) {
	c.find(key, func(e *contest) {
		if e.recordUndone(present) {
			wait = e.record.wait(now)
		}
	})
	return wait
}

// Wrote records that the Record of a workload was written, and which one was there before.
func (c *contests) Wrote(key workload.Key, before string, now time.Time) {
	c.with(key, func(e *contest) {
		e.record, e.before = e.record.next(e.recordUndone(before), now), DigestOf(before)
		c.prune(now)
	})
}

// WaitToRemove is Wait before an annotation is removed, which is there.
func (c *contests) WaitToRemove(key workload.Key, annotation string, now time.Time) (wait time.Duration) {
	c.find(key, func(e *contest) { wait = e.removed[annotation].wait(now) })
	return wait
}

// Removed records that an annotation of a workload was removed.
func (c *contests) Removed(key workload.Key, annotation string, now time.Time) {
	c.with(key, func(e *contest) {
		if e.removed == nil {
			e.removed = map[string]writes{}
		}
		e.removed[annotation] = e.removed[annotation].next(true, now)
		c.prune(now)
	})
}

// Set records that the loop itself sets an annotation: that it is there undoes no removal.
func (c *contests) Set(key workload.Key, annotation string) {
	c.find(key, func(e *contest) { delete(e.removed, annotation) })
}

// prune drops what is long ago, now and then. The caller holds the lock.
func (c *contests) prune(now time.Time) {
	if now.Sub(c.pruned) < contestOver {
		return
	}
	c.pruned = now
	maps.DeleteFunc(c.entries, func(_ workload.Key, e *contest) bool {
		maps.DeleteFunc(e.removed, func(_ string, w writes) bool { return w.over(now) })
		return e.record.over(now) && len(e.removed) == 0
	})
}

// recordUndone reports whether another writer has undone the last write of the Record: the one that it replaced is back, or there is
// something that neither the loop nor the webhook writes, which may be different each time.
func (e contest) recordUndone(present string) bool {
	if e.before == DigestOf(present) {
		return true
	}
	_, err := record.Parse(present)
	return err != nil
}

// over reports whether the write has lasted, or was never made.
func (w writes) over(now time.Time) bool { return now.Sub(w.at) >= contestOver }

// wait returns how long to wait before a write that was undone is made again.
func (w writes) wait(now time.Time) time.Duration {
	if w.over(now) || w.undone < tolerated {
		return 0
	}
	pause := backoff.Doubled(firstContest, longestContest, w.undone-tolerated)
	return max(w.at.Add(pause).Sub(now), 0)
}

// next returns the write that follows.
func (w writes) next(undone bool, now time.Time) writes {
	if !undone || w.over(now) {
		return writes{at: now}
	}
	return writes{at: now, undone: w.undone + 1}
}
