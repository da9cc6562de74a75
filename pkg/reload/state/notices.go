package state

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Notices has the notifications whose write of the Record had no answer, so that it may be stored. It is safe for concurrent use.
type Notices struct {
	perWorkload[notice]

	pruned time.Time
}

// notice has the writes that had no answer, all of one version of a workload: with any other write, the API server refuses them.
type notice struct {
	version string
	at      time.Time
	// writes are the last ones, the newest at the end.
	writes []unanswered
}

// unanswered is a write of a Record, by its digest, and the changes that it makes known.
type unanswered struct {
	record  uint64
	changes []policy.Change
}

const (
	// noticeKept is how long a notice is kept of a workload that is not looked at, since it is gone.
	noticeKept = time.Hour
	// unansweredKept is how many writes are kept of one version: of several, the last one is the likeliest to be stored.
	unansweredKept = 8
)

// Unanswered records that the write of a Record on a version of a workload had no answer.
func (n *Notices) Unanswered(key workload.Key, version, record string, changes []policy.Change, now time.Time) {
	n.with(key, func(e *notice) {
		if e.version != version {
			*e = notice{version: version}
		}
		e.at = now
		e.writes = append(e.writes, unanswered{DigestOf(record), changes})
		if len(e.writes) > unansweredKept {
			e.writes = slices.Delete(e.writes, 0, 1)
		}
		n.prune(now)
	})
}

// prune drops what is long ago, now and then. The caller holds the lock.
func (n *Notices) prune(now time.Time) {
	if now.Sub(n.pruned) < noticeKept {
		return
	}
	n.pruned = now
	maps.DeleteFunc(n.entries, func(_ workload.Key, e *notice) bool { return now.Sub(e.at) >= noticeKept })
}

// Stored returns the changes of a write without an answer that a later version of the workload shows to be stored; nil if there is none.
// It forgets the notices then: what that version does not show was not stored, and cannot be any more.
func (n *Notices) Stored(key workload.Key, version, record string) []policy.Change {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, ok := n.entries[key]
	if !ok || e.version == version {
		return nil
	}
	delete(n.entries, key)
	for _, write := range slices.Backward(e.writes) {
		if write.record == DigestOf(record) {
			return write.changes
		}
	}
	return nil
}
