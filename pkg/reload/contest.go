package reload

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// contests finds workloads whose Record another writer removes or reverts each time that the loop has written it. The loop then
// waits longer from write to write. It is safe for concurrent use.
type contests struct {
	mu     sync.Mutex
	writes map[Key]recordWrite
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

func newContests() *contests { return &contests{writes: map[Key]recordWrite{}} }

// Wait returns how long to wait before the Record of a workload is written again; it is 0 unless the last writes were undone.
func (c *contests) Wait(key Key, present string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.writes[key]
	if !ok || !w.undoneBy(present, now) || w.undone < tolerated {
		return 0
	}
	pause := longestContest
	if doubled := w.undone - tolerated; doubled < 6 {
		pause = min(firstContest<<doubled, longestContest)
	}
	return max(w.at.Add(pause).Sub(now), 0)
}

// Wrote notes that the Record of a workload was written, and which one was there before.
func (c *contests) Wrote(key Key, before string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := recordWrite{before: sum(before), at: now}
	if w, ok := c.writes[key]; ok && w.undoneBy(before, now) {
		next.undone = w.undone + 1
	}
	c.writes[key] = next
	if now.Sub(c.pruned) < contestOver {
		return
	}
	c.pruned = now
	for k, w := range c.writes {
		if now.Sub(w.at) >= contestOver {
			delete(c.writes, k)
		}
	}
}

// Forget drops a workload: the Record of another one of its name was not undone.
func (c *contests) Forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.writes, key)
}

// undoneBy reports whether the Record that the write replaced is back.
func (w recordWrite) undoneBy(present string, now time.Time) bool {
	return w.before == sum(present) && now.Sub(w.at) < contestOver
}

func sum(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// contested returns how long to wait because another writer undoes what the loop writes, and reports it.
func (l *loop) contested(ctx context.Context, s subject) time.Duration {
	wait := l.memory.contests.Wait(s.key, s.view.Marks[stamp.Record], l.now())
	if wait > 0 {
		log.FromContext(ctx).Info("Another writer removes or reverts the config-record", "workload", s.key, "after", wait)
		l.warn(s, reasonContested, contestedText)
	}
	return wait
}

// reasonContested is the reason of the Event, contestedText its text.
const reasonContested = "RecordContested"

const contestedText = "another writer removes or reverts the annotation config-record each time that it is written; " +
	"it is written ever more rarely, and changes of configuration may be missed meanwhile: " +
	"find the writer in metadata.managedFields, and let it keep annotations that it does not own"
