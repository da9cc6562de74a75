package state

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// ownWrites has the last writes of this process, by workload.
type ownWrites struct{ perWorkload[ownWrite] }

type ownWrite struct {
	// wrote is the generation that the last write gave the workload, stamped that of the last reload.
	wrote, stamped     int64
	wroteAt, stampedAt time.Time
	// adoptedAt is when what the pods of a suspended Job start with was last recorded.
	adoptedAt time.Time
}

// behindAtMost is how long the cache may take to show our own write. After that a restored backup is more likely.
const behindAtMost = 15 * time.Second

// RecordWrite records the generation that a write gave the workload.
func (w *ownWrites) RecordWrite(key workload.Key, generation int64, at time.Time) {
	w.with(key, func(e *ownWrite) { e.wrote, e.wroteAt = generation, at })
}

// IsCacheBehind reports whether a cached generation is older than the last write, as far as that can be the cache's lag: a workload
// that was created again or restored begins with a lower generation, and must not be left alone for ever.
func (w *ownWrites) IsCacheBehind(key workload.Key, generation int64, now time.Time) bool {
	e := w.get(key)
	return generation < e.wrote && now.Sub(e.wroteAt) < behindAtMost
}

// IsLacking reports whether a generation is older than the last write, however long ago that was.
func (w *ownWrites) IsLacking(key workload.Key, generation int64) bool {
	return generation < w.get(key).wrote
}

// Stamped records the generation that a reload gave the workload.
func (w *ownWrites) Stamped(key workload.Key, generation int64, at time.Time) {
	w.with(key, func(e *ownWrite) { e.wrote, e.wroteAt, e.stamped, e.stampedAt = generation, at, generation, at })
}

// StampedAt returns when the loop has reloaded the workload; zero if it has not.
func (w *ownWrites) StampedAt(key workload.Key) time.Time { return w.get(key).stampedAt }

// Adopted records when what the pods of a suspended Job start with is recorded.
func (w *ownWrites) Adopted(key workload.Key, at time.Time) {
	w.with(key, func(e *ownWrite) { e.adoptedAt = at })
}

// AdoptedAt returns when that was last recorded; zero if it was not.
func (w *ownWrites) AdoptedAt(key workload.Key) time.Time { return w.get(key).adoptedAt }

// IsStamped reports whether a generation is the one that the last reload gave the workload.
func (w *ownWrites) IsStamped(key workload.Key, generation int64) bool {
	return generation != 0 && w.get(key).stamped == generation
}

// takeovers has the foreign keys whose Record was taken over, by workload: each once, and takeoversAtMost in all, so that two
// installations do not fight and a writer of ever new keys is not followed. Each has the resourceVersion of that write.
type takeovers struct{ perWorkload[takenOver] }

type takenOver struct {
	// met is the foreign key of the Record, since when that is known.
	met   digest.KeyID
	since time.Time
	// versions are those of the writes, by key.
	versions map[digest.KeyID]string
}

// takeoversAtMost is how many foreign keys of a workload are taken over. A cluster has few installations.
const takeoversAtMost = 8

// RecordForeign records that the Record of a workload is under a foreign key, and returns since when that is known. A read of the keys from before
// may lack the key although it is in use.
func (t *takeovers) RecordForeign(key workload.Key, id digest.KeyID, now time.Time) (since time.Time) {
	t.with(key, func(e *takenOver) {
		if e.met != id {
			e.met, e.since = id, now
		}
		since = e.since
	})
	return since
}

// Allowed reports whether a Record under a foreign key may be taken over.
func (t *takeovers) Allowed(key workload.Key, id digest.KeyID) bool {
	may := true
	t.find(key, func(e *takenOver) {
		_, done := e.versions[id]
		may = !done && len(e.versions) < takeoversAtMost
	})
	return may
}

// IsPending reports whether a version of the workload is from before the write that took over a key: the watch has not shown that yet.
func (t *takeovers) IsPending(key workload.Key, id digest.KeyID, version string) (unseen bool) {
	t.find(key, func(e *takenOver) { unseen = reference.Later(e.versions[id], version) })
	return unseen
}

// Record records that a Record under a foreign key was taken over, by a write with a resourceVersion; none if the id is empty. Then it
// was a hash alone that was foreign, of which nothing is kept: after a migration, each workload has had one.
func (t *takeovers) Record(key workload.Key, id digest.KeyID, version string) {
	if id == "" {
		t.drop(key, func(e *takenOver) bool { return len(e.versions) == 0 })
		return
	}
	t.with(key, func(e *takenOver) {
		if e.versions == nil {
			e.versions = map[digest.KeyID]string{}
		}
		if len(e.versions) < takeoversAtMost {
			e.versions[id] = version
		}
	})
}

// ForgetOwn forgets that the keys of a ring were taken over: they are not foreign any more, and may be lost once more.
func (t *takeovers) ForgetOwn(key workload.Key, ring digest.Ring) {
	t.drop(key, func(e *takenOver) bool {
		maps.DeleteFunc(e.versions, func(id digest.KeyID, _ string) bool { return holds(ring, id) })
		if holds(ring, e.met) {
			e.met = ""
		}
		return e.met == "" && len(e.versions) == 0
	})
}

func holds(ring digest.Ring, id digest.KeyID) bool {
	_, held := ring.Key(id)
	return held
}
