package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// dueReloads has since when the oldest reload of a workload is due that is not done yet.
type dueReloads struct{ perWorkload[time.Time] }

// Add records that a reload is due since some time.
func (d *dueReloads) Add(key workload.Key, since time.Time) {
	d.with(key, func(due *time.Time) {
		if due.IsZero() {
			*due = since
		}
	})
}

// Oldest returns when the oldest reload that is still due became due, and how many are.
func (d *dueReloads) Oldest() (oldest time.Time, count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, due := range d.entries {
		count++
		if oldest.IsZero() || due.Before(oldest) {
			oldest = *due
		}
	}
	return oldest, count
}

// deferrals has the waits before attempts that failed may be repeated.
type deferrals struct{ perWorkload[Deferral] }

// Deferral is the wait before the next attempt, for which the workload is queued. What else queues the workload may bring the attempt forward.
type Deferral struct {
	// Since is when the last config event came that the attempt knew of.
	Since time.Time
	// Until is when the next attempt may be made if no later config event comes, or if none ends the wait.
	Until time.Time
	// NotBefore is when a config event may lead to the next attempt at the earliest. Under constant change there would be no wait otherwise.
	NotBefore time.Time
	// IgnoresEvents means that no event ends the wait.
	IgnoresEvents bool
	// Stored means that the API server has stored a write of the attempt: its watch event is no reason to try again earlier.
	Stored bool
}

// end returns when the wait ends for a workload whose last config event came at a time. firm means that no later one changes that.
func (e Deferral) end(lastEvent time.Time) (at time.Time, firm bool) {
	switch {
	case e.IgnoresEvents:
		return e.Until, true
	case e.Stored && !lastEvent.After(e.Since):
		return e.Until, false
	default:
		return e.NotBefore, true
	}
}

// Defer records that the next attempt must wait.
func (d *deferrals) Defer(key workload.Key, wait Deferral) {
	d.with(key, func(e *Deferral) { *e = wait })
}

// Failed records that an attempt failed, and when it is due again.
func (d *deferrals) Failed(key workload.Key, wait Deferral, now time.Time) {
	wait.NotBefore = earlier(wait.Until, now.Add(longestSoon))
	d.Defer(key, wait)
}

// Written ends the wait of a workload that was written, unless the write is that of the attempt: it may be what hindered the attempt that
// has changed.
func (d *deferrals) Written(key workload.Key) {
	d.find(key, func(e *Deferral) {
		if !e.Stored {
			e.NotBefore = time.Time{}
		}
	})
}

// IgnoresEvents reports whether no later config event ends the wait of a workload whose last one came at a time.
func (d *deferrals) IgnoresEvents(key workload.Key, lastEvent time.Time) (firm bool) {
	d.find(key, func(e *Deferral) { _, firm = e.end(lastEvent) })
	return firm
}

// Wait returns how long to wait before the next attempt at a workload whose last config event came at a time; zero if none did.
func (d *deferrals) Wait(key workload.Key, lastEvent, now time.Time) time.Duration {
	at, _ := d.get(key).end(lastEvent)
	return max(at.Sub(now), 0)
}

// WaitToWrite returns how long after an attempt that failed no config event leads to any other write of the workload.
func (d *deferrals) WaitToWrite(key workload.Key, now time.Time) time.Duration {
	return max(d.get(key).NotBefore.Sub(now), 0)
}

// unreadWaits has since when a reload waits for custom resources that this process has not read yet.
type unreadWaits struct{ perWorkload[time.Time] }

// unreadLimit is how long a reload waits for them at most. A configuration that may be read again is read within 10 s.
const unreadLimit = 20 * time.Second

// Wait returns since when the reload of a workload waits, and for how long it still does; the first call begins the wait.
func (u *unreadWaits) Wait(key workload.Key, now time.Time) (since time.Time, left time.Duration) {
	u.with(key, func(began *time.Time) {
		if began.IsZero() {
			*began = now
		}
		since, left = *began, max(began.Add(unreadLimit).Sub(now), 0)
	})
	return since, left
}
