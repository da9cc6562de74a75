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

// Postponed records that a reload that is due had to wait until now, as a user asked for: it is late only from now on.
func (d *dueReloads) Postponed(key workload.Key, now time.Time) {
	d.find(key, func(due *time.Time) { *due = later(*due, now) })
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

// Deferral is the wait before the next attempt.
type Deferral struct {
	// Since is when the last config event came that the attempt knew of, Until is when the next one may be made.
	Since, Until time.Time
	// IgnoresEvents means that no event ends the wait. Under constant change there would be no wait otherwise.
	IgnoresEvents bool
}

// Defer records that an attempt failed. The watch event of a write of ours is no reason to try again earlier; a config event
// is, unless the wait ignores events.
func (d *deferrals) Defer(key workload.Key, wait Deferral) {
	d.with(key, func(e *Deferral) { *e = wait })
}

// IgnoresEvents reports whether no event ends the wait of a workload.
func (d *deferrals) IgnoresEvents(key workload.Key) (firm bool) {
	d.find(key, func(e *Deferral) { firm = e.IgnoresEvents })
	return firm
}

// Wait returns how long to wait before the next attempt at a workload whose last config event came at a time; zero if none did.
func (d *deferrals) Wait(key workload.Key, lastEvent, now time.Time) time.Duration {
	var wait time.Duration
	d.find(key, func(e *Deferral) {
		if e.IgnoresEvents || !lastEvent.After(e.Since) {
			wait = max(e.Until.Sub(now), 0)
		}
	})
	return wait
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
