package state

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// changes has the arrivals of config events, by workload.
type changes struct{ perWorkload[arrivalsEntry] }

// Arrivals are when config events came.
type Arrivals struct {
	// First is the first event since the workload was last found to be in order, Last is the last one.
	First, Last time.Time
	// FirstUnhandled is the first event that no attempt has acted on; zero if there is none. Later events do not move it, so that
	// constant change cannot put a reload off.
	FirstUnhandled time.Time
}

type arrivalsEntry struct {
	Arrivals
	// next is the arrival of the first config event since the present attempt began.
	next time.Time
	// look is when the workload is looked at again at the latest, whatever config events come before that; zero if that is not known.
	look time.Time
	// patience is how long a config event needs no look, because the workload waits for something else; 0 if it does not.
	patience time.Duration
	// inherited says that the events came before this process led: another may have dealt with them.
	inherited bool
}

// EventArrived records the arrival of a config event. An event that was known before its workload may come late.
func (c *changes) EventArrived(key workload.Key, at time.Time) {
	c.with(key, func(e *arrivalsEntry) { e.arrived(at) })
}

// Look is when to look at a workload.
type Look struct {
	Key   workload.Key
	After time.Duration
}

// EventArrivedFor is EventArrived for all workloads that an event concerns. It returns which of them to look at for it now, in the memory of
// keys, and which later: the caller queues them by then. The others are looked at anyway.
func (c *changes) EventArrivedFor(keys []workload.Key, at time.Time) (now []workload.Key, later []Look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now = slices.DeleteFunc(keys, func(key workload.Key) bool {
		e := c.entryLocked(key)
		e.arrived(at)
		after, needed := e.nextCheck(at)
		if needed && after > 0 {
			later = append(later, Look{key, after})
		}
		return !needed || after > 0
	})
	return now, later
}

func (e *arrivalsEntry) arrived(at time.Time) {
	if e.inherited && at.After(e.Last) {
		e.First, e.FirstUnhandled, e.inherited = time.Time{}, time.Time{}, false // of events that another has dealt with, only the last counts
	}
	e.First, e.FirstUnhandled, e.next = earlier(e.First, at), earlier(e.FirstUnhandled, at), earlier(e.next, at)
	if at.After(e.Last) {
		e.Last = at
	}
}

// nextCheck returns after what time to look at the workload for a config event that came at a time, or false if it is looked at anyway.
func (e *arrivalsEntry) nextCheck(at time.Time) (after time.Duration, needed bool) {
	switch {
	case at.Before(e.look):
		return 0, false
	case e.look.IsZero() && e.patience > 0:
		e.look = at.Add(e.patience)
		return e.patience, true
	default:
		return 0, true
	}
}

// WaitToSettle records until when the workload waits for its configuration to settle: it is looked at again then. The next attempt ends it.
func (c *changes) WaitToSettle(key workload.Key, until time.Time) {
	c.find(key, func(e *arrivalsEntry) { e.look = until })
}

// WaitForOther records that the workload waits for something that no config event ends, and how long such an event needs no look. The next
// attempt ends it.
func (c *changes) WaitForOther(key workload.Key, patience time.Duration) {
	c.find(key, func(e *arrivalsEntry) { e.patience = patience })
}

// earlier returns the earlier of two times; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// BecomeLeader begins the time as the leader. What came before was another's to deal with, and perhaps is: of those events only
// the last ones count, so that a change that comes now is given the time to settle.
func (c *changes) BecomeLeader() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.First, e.FirstUnhandled, e.inherited = e.Last, e.Last, true
	}
}

// HasPending reports whether a config event came since which the workload has not been found in order, and which no attempt has acted on: one
// that fails for good, such as for a missing permission, does not keep it pending. Events from before this process led do not count.
func (c *changes) HasPending(key workload.Key) bool { return c.get(key).pending() }

func (e arrivalsEntry) pending() bool { return !e.FirstUnhandled.IsZero() && !e.inherited }

// forgetUnlessPending forgets the events of a workload, unless one is pending.
func (c *changes) forgetUnlessPending(key workload.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok && e.pending() {
		return false
	}
	delete(c.entries, key)
	return true
}

// BeginAttempt begins an attempt: it returns the arrivals that the attempt takes into account, and separates them from those that
// come meanwhile.
func (c *changes) BeginAttempt(key workload.Key) Arrivals {
	var a Arrivals
	c.find(key, func(e *arrivalsEntry) { a, e.next, e.look, e.patience = e.Arrivals, time.Time{}, time.Time{}, 0 })
	return a
}

// StampedByOther records that a release or a client has brought the configuration: of the events that have come, only the last one may have
// been too late for that. It returns what the attempt takes into account.
func (c *changes) StampedByOther(key workload.Key) Arrivals {
	var a Arrivals
	c.find(key, func(e *arrivalsEntry) {
		if !e.FirstUnhandled.IsZero() {
			e.FirstUnhandled = e.Last
		}
		a = e.Arrivals
	})
	return a
}

// LastEvent is when the last config event came, also since the attempt began.
func (c *changes) LastEvent(key workload.Key) time.Time { return c.get(key).Last }

// MarkActedOn records that the attempt has acted on its events, but failed. What comes later is given the time to settle.
func (c *changes) MarkActedOn(key workload.Key) {
	c.find(key, func(e *arrivalsEntry) { e.FirstUnhandled = e.next })
}

// ForgetHandled forgets the events of the attempt, which has left nothing to do; those that came meanwhile stay.
func (c *changes) ForgetHandled(key workload.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	switch {
	case !ok:
	case !e.next.IsZero():
		e.First, e.FirstUnhandled, e.inherited = e.next, e.next, false
	case e.look.IsZero() && e.patience == 0:
		delete(c.entries, key) // nothing is left: one that is zero, and one that is missing, are the same
	default:
		e.Arrivals = Arrivals{}
	}
}
