package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

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
