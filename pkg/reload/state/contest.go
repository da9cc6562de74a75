package state

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// contests finds the workloads whose Record another writer removes, reverts or spoils each time that the loop has written it. The loop then
// waits longer from write to write. It is safe for concurrent use.
type contests struct {
	perWorkload[recordWrite]

	pruned time.Time
}

// recordWrite is the loop's last write of a Record.
type recordWrite struct {
	// before is the sum of the Record that it replaced.
	before uint64
	at     time.Time
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
func (c *contests) Wait(key workload.Key, present string, now time.Time) time.Duration {
	var wait time.Duration
	c.find(key, func(w *recordWrite) {
		if !w.undoneBy(present, now) || w.undone < tolerated {
			return
		}
		pause := longestContest
		if doubled := w.undone - tolerated; doubled < 6 {
			pause = min(firstContest<<doubled, longestContest)
		}
		wait = max(w.at.Add(pause).Sub(now), 0)
	})
	return wait
}

// Wrote records that the Record of a workload was written, and which one was there before.
func (c *contests) Wrote(key workload.Key, before string, now time.Time) {
	c.with(key, func(w *recordWrite) {
		next := recordWrite{before: DigestOf(before), at: now}
		if w.undoneBy(before, now) {
			next.undone = w.undone + 1
		}
		*w = next
		c.prune(now)
	})
}

// prune drops what is long ago, now and then. The caller holds the lock.
func (c *contests) prune(now time.Time) {
	if now.Sub(c.pruned) < contestOver {
		return
	}
	c.pruned = now
	maps.DeleteFunc(c.entries, func(_ workload.Key, w *recordWrite) bool { return now.Sub(w.at) >= contestOver })
}

// undoneBy reports whether another writer has undone the write: the Record that it replaced is back, or there is something that
// neither the loop nor the webhook writes, which may be different each time.
func (w recordWrite) undoneBy(present string, now time.Time) bool {
	if now.Sub(w.at) >= contestOver {
		return false
	}
	if w.before == DigestOf(present) {
		return true
	}
	_, err := record.Parse(present)
	return err != nil
}
