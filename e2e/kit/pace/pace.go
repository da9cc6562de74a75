// Package pace tells whether the machine kept pace while a test ran. What pod-reloader promises is a matter of seconds:
// changes within the settle time are one, and the API server waits so long and no longer for the webhook. A test that plays
// through all of it can judge only where no second was lost.
package pace

import (
	"testing"
	"time"
)

const (
	// attempts is how often something is tried at most.
	attempts = 3
	// look is how often the clock is looked at.
	look = 20 * time.Millisecond
	// tolerated is by how much a look may be late: a fraction of the shortest time that matters, the settle time.
	tolerated = 250 * time.Millisecond
)

// Try makes attempts until one is right. One that is wrong is the last as well, unless the machine stood still meanwhile:
// then it shows nothing. What the last attempt has found is for the caller to judge.
func Try(t testing.TB, attempt func() (right bool)) {
	t.Helper()
	try(t, attempt, watch)
}

func try(t testing.TB, attempt func() bool, watch func() (longest func() time.Duration)) {
	t.Helper()
	for range attempts {
		longest := watch()
		right := attempt()
		stood := longest()
		if right || stood < tolerated {
			return
		}
		t.Logf("the machine stood still for %s, so this attempt shows nothing", stood.Round(time.Millisecond))
	}
}

// watch looks at the clock until longest is called, which tells by how much the latest look was late.
func watch() (longest func() time.Duration) {
	stop, found := make(chan struct{}), make(chan time.Duration)
	go func() {
		latest := time.Duration(0)
		for {
			due := time.Now().Add(look)
			select {
			case <-stop:
				found <- latest
				return
			case <-time.After(look):
				latest = max(latest, time.Since(due))
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-found
	}
}
