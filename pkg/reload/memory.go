package reload

import (
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// memory holds what the loop remembers of workloads while it runs. Nothing in it decides whether a reload is due; losing
// it costs at most a repeated Event or an unsettled reload. It is safe for concurrent use.
type memory struct {
	contests *contests
	aging    *aging

	mu sync.Mutex
	// notes has the workloads that there is something to remember of, which most of a cluster's are not.
	notes map[Key]*note
}

type note struct {
	arrivals
	// next is the arrival of the first config event since the present attempt began.
	next time.Time
	// settles is until when the workload waits for its configuration to settle; zero if it does not.
	settles time.Time
	// reloads are the reloads that the last-reload annotation names.
	reloads reported
	// warned maps the reason of a Warning Event to what was last sent for it.
	warned map[string]warned
	// due is when the oldest reload that is not done yet became due.
	due time.Time
	// wrote is the generation that our last write gave the workload, at wroteAt.
	wrote   int64
	wroteAt time.Time
	// stamped is the generation that our last reload gave the workload, at stampedAt.
	stamped   int64
	stampedAt time.Time
	// deferral is the wait before an attempt that failed may be repeated.
	deferral deferral
	// adopted are the foreign keys whose Record was taken over already.
	adopted map[digest.KeyID]bool
}

// behindAtMost is how long the cache may take to show our own write. After that a restored backup is more likely.
const behindAtMost = 15 * time.Second

func newMemory() *memory {
	return &memory{contests: newContests(), aging: newAging(), notes: map[Key]*note{}}
}

// with calls f with the note of a workload, under the lock.
func (m *memory) with(key Key, f func(*note)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.notes[key]
	if !ok {
		n = &note{}
		m.notes[key] = n
	}
	f(n)
}

// recall calls f with the note of a workload, under the lock, if there is one.
func (m *memory) recall(key Key, f func(*note)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.notes[key]; ok {
		f(n)
	}
}

// arrivals are when config events came.
type arrivals struct {
	// first is the first event since the workload was last found to be in order, last is the last one.
	first, last time.Time
	// unacted is the first event that no attempt has acted on; zero if there is none. Later events do not move it, so that
	// constant change cannot put a reload off.
	unacted time.Time
}

// Changed notes the arrival of a config event, and reports whether the workload waits for its configuration to settle anyway:
// then it is looked at again when that time is over. An event that was known before its workload may come late.
func (m *memory) Changed(key Key, at time.Time) (settles bool) {
	m.with(key, func(n *note) {
		settles = at.Before(n.settles)
		n.first, n.unacted, n.next = earlier(n.first, at), earlier(n.unacted, at), earlier(n.next, at)
		if at.After(n.last) {
			n.last = at
		}
	})
	return settles
}

// Settles notes until when the workload waits for its configuration to settle. The next attempt ends it.
func (m *memory) Settles(key Key, until time.Time) {
	m.recall(key, func(n *note) { n.settles = until })
}

// earlier returns the earlier of two times; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Lead begins the time as the leader. What came before was another's to deal with, and perhaps is: of those events only
// the last ones count, so that a change that comes now is given the time to settle.
func (m *memory) Lead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.notes {
		n.first, n.unacted = n.last, n.last
	}
}

// Attempt begins an attempt: it returns the arrivals that the attempt takes into account, and tells them from those that come
// meanwhile.
func (m *memory) Attempt(key Key) arrivals {
	var a arrivals
	m.recall(key, func(n *note) { a, n.next, n.settles = n.arrivals, time.Time{}, time.Time{} })
	return a
}

// Acted notes that the attempt has acted on its events, but failed. What comes later is given the time to settle.
func (m *memory) Acted(key Key) {
	m.recall(key, func(n *note) { n.unacted = n.next })
}

// Settled forgets the events of the attempt, which has left nothing to do; those that came meanwhile stay.
func (m *memory) Settled(key Key) {
	m.recall(key, func(n *note) {
		if n.next.IsZero() {
			n.arrivals = arrivals{}
			return
		}
		n.first, n.unacted = n.next, n.next
	})
}

// Due notes that a reload is due since some time.
func (m *memory) Due(key Key, since time.Time) {
	m.with(key, func(n *note) {
		if n.due.IsZero() {
			n.due = since
		}
	})
}

// Done notes that no reload is due.
func (m *memory) Done(key Key) {
	m.recall(key, func(n *note) { n.due, n.deferral = time.Time{}, deferral{} })
}

// OldestDue returns when the oldest reload that is still due became due, and how many are.
func (m *memory) OldestDue() (oldest time.Time, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.notes {
		if n.due.IsZero() {
			continue
		}
		count++
		if oldest.IsZero() || n.due.Before(oldest) {
			oldest = n.due
		}
	}
	return oldest, count
}

// Wrote notes the generation that a write of ours gave the workload.
func (m *memory) Wrote(key Key, generation int64, at time.Time) {
	m.with(key, func(n *note) { n.wrote, n.wroteAt = generation, at })
}

// Behind tells whether a cached generation is older than our own last write, as far as that can be the cache's lag: a
// workload that was created anew or restored begins with a lower generation, and must not be left alone for ever.
func (m *memory) Behind(key Key, generation int64, now time.Time) bool {
	behind := false
	m.recall(key, func(n *note) { behind = generation < n.wrote && now.Sub(n.wroteAt) < behindAtMost })
	return behind
}

// deferral is the wait before the next attempt.
type deferral struct {
	// since is when the attempt failed, until is when the next one may be made.
	since, until time.Time
	// firm means that no event ends the wait. Under constant change there would be no wait otherwise.
	firm bool
}

// Defer notes that an attempt failed. The watch event of a write of ours is no reason to try again earlier; a config event
// is, unless the wait is firm.
func (m *memory) Defer(key Key, d deferral) {
	m.with(key, func(n *note) { n.deferral = d })
}

// Deferred returns how long to wait before the next attempt.
func (m *memory) Deferred(key Key, now time.Time) time.Duration {
	var wait time.Duration
	m.recall(key, func(n *note) {
		if d := n.deferral; d.firm || !n.last.After(d.since) {
			wait = max(d.until.Sub(now), 0)
		}
	})
	return wait
}

// Stamped notes the generation that a reload of ours gave the workload.
func (m *memory) Stamped(key Key, generation int64, at time.Time) {
	m.with(key, func(n *note) { n.stamped, n.stampedAt = generation, at })
}

// StampedAt returns when the loop has reloaded the workload; zero if it has not.
func (m *memory) StampedAt(key Key) time.Time {
	var at time.Time
	m.recall(key, func(n *note) { at = n.stampedAt })
	return at
}

// IsStamped tells whether a generation is the one that our last reload gave the workload.
func (m *memory) IsStamped(key Key, generation int64) bool {
	stamped := false
	m.recall(key, func(n *note) { stamped = generation != 0 && n.stamped == generation })
	return stamped
}

// MayAdoptForeign reports whether a Record under a foreign key may be taken over: once for each key and workload, so that
// two installations do not fight.
func (m *memory) MayAdoptForeign(key Key, id digest.KeyID) bool {
	may := true
	m.recall(key, func(n *note) { may = !n.adopted[id] })
	return may
}

// AdoptedForeign notes that a Record under a foreign key was taken over.
func (m *memory) AdoptedForeign(key Key, id digest.KeyID) {
	if id == "" {
		return
	}
	m.with(key, func(n *note) {
		if n.adopted == nil {
			n.adopted = map[digest.KeyID]bool{}
		}
		n.adopted[id] = true
	})
}

// Forget drops all that is remembered of a workload.
func (m *memory) Forget(key Key) {
	m.contests.Forget(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, key)
}
