package state

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// notices has the notifications whose write of the Record had no answer, so that it may be stored.
type notices struct{ perWorkload[notice] }

// notice has the writes that had no answer, all of one version of a workload: with any other write, the API server refuses them.
type notice struct {
	version string
	// writes are the last ones, the newest at the end.
	writes []unanswered
}

// unanswered is a write of a Record, by its digest, and the changes that it makes known.
type unanswered struct {
	record  uint64
	changes []policy.Change
}

// unansweredKept is how many writes are kept of one version: of several, the last one is the likeliest to be stored.
const unansweredKept = 8

// Unanswered records that the write of a Record on a version of a workload had no answer.
func (n *notices) Unanswered(key workload.Key, version, record string, changes []policy.Change) {
	n.with(key, func(e *notice) {
		if e.version != version {
			*e = notice{version: version}
		}
		e.writes = append(e.writes, unanswered{DigestOf(record), changes})
		if len(e.writes) > unansweredKept {
			e.writes = slices.Delete(e.writes, 0, 1)
		}
	})
}

// Stored returns the changes of a write without an answer that a later version of the workload shows to be stored; nil if there is none.
// It forgets the notices then: what that version does not show was not stored, and cannot be any more.
func (n *notices) Stored(key workload.Key, version, record string) []policy.Change {
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
